"""A head on pooled tokens: sentence-transformers has a module for it, transformers has no class.

``transformers.AutoModel`` loads the folder's encoder. ``SentenceTransformer(folder)`` computes the
logits with the modules Transformer, Pooling and Dense.
"""

from pathlib import Path
from typing import Any

from npformer.core import checks, to_numpy
from npformer.data.json_file import read_json_if_there
from npformer.interop.architecture import Head, Settings, values_of
from npformer.interop.folder import WEIGHTS, read_weights
from npformer.interop.heads import TrainedHead, make_trained_head
from npformer.interop.sentences import MODULES, module_paths
from npformer.models.trainable import SequenceClassifier
from npformer.models.trainable.text_encoder import TextEncoder

DENSE = "2_Dense"
IDENTITY = "torch.nn.modules.linear.Identity"
LAYERS = {"classify": "linear"}


def dense_files(model: SequenceClassifier) -> dict[str, Any]:
    """Return {name: content} of the files that hold a classifier's last layer."""
    from safetensors.numpy import save

    weight, bias = map(to_numpy, values_of(model.classify).values())
    settings = {
        "in_features": weight.shape[0],
        "out_features": weight.shape[1],
        "bias": True,
        "activation_function": IDENTITY,
    }
    tensors = {"linear.weight": weight.T.copy(), "linear.bias": bias.copy()}
    return {
        f"{DENSE}/config.json": settings,
        f"{DENSE}/{WEIGHTS}": bytes(save(tensors, metadata={"format": "pt"})),
    }


def read_dense_head(
    folder: Path, hf_config: Settings, pooling: str, encoder: TextEncoder
) -> TrainedHead | None:
    """Return the head that modules.json names; None if it names none."""
    path = module_paths(folder).get("Dense")
    if path is None:
        return None
    settings = read_json_if_there(path / "config.json")
    if settings.get("activation_function") != IDENTITY or not settings.get("bias", True):
        raise ValueError(
            f"{folder / MODULES} has a Dense that is not a classifier: {path / 'config.json'} "
            f"has activation_function = {settings.get('activation_function')!r} and bias = "
            f"{settings.get('bias', True)}; expected {IDENTITY!r} and True, as npformer has"
        )
    n = checks.positive(f"out_features in {path}", settings.get("out_features"))
    d_model = encoder.config.d_model
    state = read_weights(path, encoder.dtype, {})
    shapes = {name: array.shape for name, array in state.items()}
    if shapes != {"linear.weight": (n, d_model), "linear.bias": (n,)}:
        raise ValueError(
            f"{path} holds {shapes}; expected linear.weight with out_features = {n} rows of "
            f"{d_model}, the encoder's features, and linear.bias"
        )
    arrays = {"classify.weight": state["linear.weight"].T, "classify.bias": state["linear.bias"]}
    return make_trained_head(Head("", pooling, LAYERS), arrays, hf_config)
