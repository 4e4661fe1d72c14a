"""Weights of BERT and FNet from Hugging Face's transformers, and back.

    encoder = npformer.interop.from_bert(state, config)
    hidden, pooled = encoder(ids, mask, types)

PyTorch is not needed, only a mapping of names to NumPy arrays, as safetensors returns it::

    import json, safetensors.numpy
    state = safetensors.numpy.load_file("model.safetensors")
    config = json.load(open("config.json"))

or a model in memory: ``state = {k: v.numpy() for k, v in bert.state_dict().items()}`` and
``config = bert.config.to_dict()``.

The encoder has its pooler, but not the layers of a pretrained model's task (``cls.``,
``classifier.``, ``qa_outputs.``). To fine-tune a classifier, copy the weights by name::

    model = npformer.SequenceClassifier(
        encoder.config,
        n_classes,
        vocab_size=encoder.vocab_size,
        pooling="pooler",
        dtype=encoder.dtype,
    )
    for name, array in encoder.parameters().items():
        model.parameters()[name][...] = array

Two things differ in training, and none at evaluation: there is no dropout of attention weights
(``attention_probs_dropout_prob``), and the embedding of the padding token is trained like any
other, where PyTorch keeps its gradient at 0 (``padding_idx``).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.interop.huggingface_config import foreign_settings, translated
from npformer.text_encoder import TextEncoder

_CLASSES = {"bert": "BertModel", "fnet": "FNetModel"}

TABLES = ("embed.tokens.weight", "embed.positions.table", "embed.types.weight")
"""Our names of two-dimensional parameters that are not weights of a linear layer."""

MIXING = {
    "bert": {
        "mixer.query": "attention.self.query",
        "mixer.key": "attention.self.key",
        "mixer.value": "attention.self.value",
        "mixer.output": "attention.output.dense",
        "mixer_norm": "attention.output.LayerNorm",
    },
    "fnet": {"mixer_norm": "fourier.output.LayerNorm"},
}
FEED_FORWARD = {
    "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
"""{our name: their name} of the layers in a block's two halves."""

BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
"""Constants in older files, 0, 1, 2, ... and zeros; they are ignored."""

TASK_LAYERS = ("cls.", "classifier.", "qa_outputs.")
"""Prefixes of layers on top of the encoder; they are ignored."""


def from_bert(state: Mapping[str, np.ndarray], hf_config: Mapping[str, Any]) -> TextEncoder:
    """Return a `TextEncoder` with the weights of a BERT.

    Parameters
    ----------
    state : mapping of str to array
        All float32 or all float64, under the names of ``BertModel``, with or without the prefix
        ``bert.``; LayerNorm's weights may have their older names, ``gamma`` and ``beta``.
    hf_config : mapping
        ``BertConfig(...).to_dict()``, or the content of config.json.

    Returns
    -------
    encoder : TextEncoder
        In the dtype of `state`, with a pooler if `state` has one.

    Notes
    -----
    Devlin et al., 2019, arXiv 1810.04805. Weights of linear layers are transposed, from (out, in)
    to (in, out); nothing else is changed, and `to_bert` returns exactly the same arrays.
    """
    return _from("bert", state, hf_config, padding="refuse")


def from_fnet(
    state: Mapping[str, np.ndarray], hf_config: Mapping[str, Any], *, padding: str = "refuse"
) -> TextEncoder:
    """Return a `TextEncoder` with the weights of an FNet (Lee-Thorp et al., arXiv 2105.03824).

    Parameters
    ----------
    state, hf_config : mapping
        As in `from_bert`, of ``FNetModel``.
    padding : {"refuse", "per_length", "zero"}
        What to do with a padding mask: see `EncoderConfig`. The published model takes none, and
        treats padding like any other token; without a mask, so does this one.
    """
    return _from("fnet", state, hf_config, padding=padding)


def _from(
    kind: str, state: Mapping[str, Any], hf_config: Mapping[str, Any], *, padding: str
) -> TextEncoder:
    config = translated(kind, hf_config, padding)
    theirs = _checked_arrays(kind, state)
    pooler = any(name.startswith("pooler.") for name in theirs)
    dtype = str(next(iter(theirs.values())).dtype)
    encoder = TextEncoder(config, int(hf_config["vocab_size"]), pooler=pooler, dtype=dtype)
    names = names_of(kind, config.n_layers, pooler)
    parameters = encoder.parameters()
    expected = {name: transposed(ours, parameters[ours]) for ours, name in names.items()}
    if problems := checks.misfits(theirs, expected):
        raise ValueError(
            f"state does not fit hf_config: {problems}. Expected the weights of the "
            f"{_CLASSES[kind]} that this configuration belongs to"
        )
    for name, weights in expected.items():
        weights[...] = theirs[name]  # a view of the parameter
    return encoder


def _checked_arrays(kind: str, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the encoder's arrays under their names without prefix, after checking the dtypes."""
    if not isinstance(state, Mapping) or not state:
        what = "empty" if isinstance(state, Mapping) else f"a {type(state).__name__}"
        raise TypeError(f"state is {what}; expected a mapping of names to NumPy arrays")
    for name in state:
        checks.text("a name in state", name)
    prefix = f"{kind}." if any(name.startswith(f"{kind}.") for name in state) else ""
    arrays: dict[str, np.ndarray] = {}
    for name, array in state.items():
        short = name.removeprefix(prefix)
        if name.startswith(TASK_LAYERS) or short in BUFFERS:
            continue
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"{name} is a {type(array).__name__}; expected a NumPy array. For a model of "
                "PyTorch write {k: v.numpy() for k, v in model.state_dict().items()}"
            )
        short = short.replace("LayerNorm.gamma", "LayerNorm.weight")
        arrays[short.replace("LayerNorm.beta", "LayerNorm.bias")] = array
    if not arrays:
        raise ValueError(
            f"state has no weights of a {_CLASSES[kind]}, only {', '.join(list(state)[:3])}"
        )
    first, dtype = next((name, array.dtype) for name, array in arrays.items())
    for name, array in arrays.items():
        if array.dtype.name not in checks.FLOATS or array.dtype != dtype:
            raise TypeError(
                f"{name} has dtype {array.dtype} and {first} {dtype}; expected all float32 or all "
                "float64. Convert them with .astype('float32')"
            )
    return arrays


# And back -----------------------------------------------------------------------------------------


def to_bert(encoder: TextEncoder, arrays: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
    """Return the weights of a `TextEncoder` under the names and in the layout of ``BertModel``.

    Parameters
    ----------
    encoder : TextEncoder
        With the architecture of a BERT, as `from_bert` makes it.
    arrays : mapping of str to array, optional
        Arrays to return instead of the weights, under npformer's names, such as their gradients.

    Returns
    -------
    state : dict of str to array
        Copies, on the host. For PyTorch:
        ``model.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})``.
    """
    return _to("bert", encoder, arrays)


def to_fnet(encoder: TextEncoder, arrays: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
    """Return the weights of a `TextEncoder` as those of ``FNetModel``; see `to_bert`."""
    return _to("fnet", encoder, arrays)


def _to(kind: str, encoder: TextEncoder, arrays: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    if not isinstance(encoder, TextEncoder):
        raise TypeError(f"encoder is a {type(encoder).__name__}; expected a TextEncoder")
    if arrays is not None:
        checks.instance("arrays", arrays, Mapping)
    if found := foreign_settings(kind, encoder.config):
        raise ValueError(
            f"this encoder does not fit {_CLASSES[kind]}: it has {', '.join(found)}. Expected an "
            f"encoder as npformer.interop.from_{kind} makes it"
        )
    values = encoder.parameters() if arrays is None else arrays
    names = names_of(kind, encoder.config.n_layers, encoder.pool is not None)
    if missing := [ours for ours in names if ours not in values]:
        raise ValueError(f"arrays has no {missing[0]!r}; expected one for each parameter")
    return {
        theirs: np.array(transposed(ours, to_numpy(values[ours])), order="C")
        for ours, theirs in names.items()
    }


# Names and layouts --------------------------------------------------------------------------------


def transposed(ours: str, array: Any) -> Any:
    """Transpose the weight of a linear layer, (in, out) <-> (out, in); return the rest as it is."""
    return array.T if array.ndim == 2 and ours not in TABLES else array


def names_of(kind: str, n_layers: int, pooler: bool) -> dict[str, str]:
    """Return {our name: their name} for all parameters of a "bert" or "fnet", in their order."""
    names = {
        "embed.tokens.weight": "embeddings.word_embeddings.weight",
        "embed.positions.table": "embeddings.position_embeddings.weight",
        "embed.types.weight": "embeddings.token_type_embeddings.weight",
    }
    layers = {"embed.norm": "embeddings.LayerNorm"}
    if kind == "fnet":
        layers["embed.projection"] = "embeddings.projection"
    for i in range(n_layers):
        for ours, theirs in (MIXING[kind] | FEED_FORWARD).items():
            layers[f"encoder.blocks.{i}.{ours}"] = f"encoder.layer.{i}.{theirs}"
    if pooler:
        layers["pool.dense"] = "pooler.dense"
    for our_layer, their_layer in layers.items():
        weight, bias = ("gamma", "beta") if our_layer.endswith("norm") else ("weight", "bias")
        names[f"{our_layer}.{weight}"] = f"{their_layer}.weight"
        names[f"{our_layer}.{bias}"] = f"{their_layer}.bias"
    return names
