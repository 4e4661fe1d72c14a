"""Weights of BERT and FNet from Hugging Face's transformers, and back.

    encoder = npformer.interop.from_bert(state, config)
    hidden, pooled = encoder(ids, mask, types)

`npformer.from_pretrained` reads a whole folder, and more kinds of models. Here PyTorch is not
needed, only a mapping of names to NumPy arrays, as safetensors returns it::

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

One thing differs in training, and nothing at evaluation: the embedding of the padding token is
trained like any other, while PyTorch keeps its gradient at 0 (``padding_idx``). With a padding mask
it is 0 here, too.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import Layer, a_type, checks, initializers
from npformer.interop.architecture import ARCHITECTURES, POSITIONS, Architecture, their_layout
from npformer.interop.settings import encoder_config, foreign_settings
from npformer.training.trainable.text_encoder import TextEncoder

BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
"""Constants in older files, 0, 1, 2, ... and zeros; they are ignored."""

OF_TASKS = ("classifier.", "pre_classifier.", "qa_outputs.")
"""Prefixes of layers on top of the encoder that were trained for a task; it has none of them."""


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
    return encoder_of(ARCHITECTURES["bert"], state, hf_config)


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
    return encoder_of(ARCHITECTURES["fnet"], state, hf_config, padding=padding)


def encoder_of(
    architecture: Architecture,
    state: Mapping[str, Any],
    hf_config: Mapping[str, Any],
    *,
    padding: str = "refuse",
) -> TextEncoder:
    """Return a `TextEncoder` with the weights of a model of any family: see `from_bert`."""
    config = encoder_config(architecture, hf_config, padding)
    theirs = encoder_arrays(architecture, state)
    pooler = f"{architecture.layers.get('pool.dense')}.weight" in theirs
    dtype = str(next(iter(theirs.values())).dtype)
    # Drawing a hundred million weights takes seconds. Sizes that are far off are refused at once.
    most = 4 * sum(array.size for array in theirs.values()) + (1 << 20)
    seed, vocab_size = initializers.undrawn(most), int(hf_config["vocab_size"])
    try:
        encoder = TextEncoder(config, vocab_size, pooler=pooler, seed=seed, dtype=dtype)
    except ValueError as error:
        raise ValueError(f"hf_config does not fit state: {error}; expected equal sizes") from error
    parameters = encoder.parameters()
    places = architecture.places(parameters)
    table = places[POSITIONS].key
    if table in theirs:
        theirs[table] = theirs[table][architecture.unused_positions(hf_config) :]
    expected = {place.key: place.theirs(parameters[ours]) for ours, place in places.items()}
    if problems := checks.misfits(theirs, expected):
        raise ValueError(
            f"state does not fit hf_config: {problems}. Expected the weights of the "
            f"{architecture.class_name()} that this configuration belongs to"
        )
    for name, weights in expected.items():
        weights[...] = theirs[name]  # a view of the parameter
    return encoder


def encoder_arrays(architecture: Architecture, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Check the dtypes of the encoder's arrays, and return them under names without prefix."""
    if not isinstance(state, Mapping) or not state:
        what = "empty" if isinstance(state, Mapping) else a_type(state)
        raise TypeError(f"state is {what}; expected a mapping of names to NumPy arrays")
    for name in state:
        checks.text("a name in state", name)
    has_head = any(name.startswith(architecture.prefix) for name in state)
    prefix = architecture.prefix if has_head else ""
    arrays: dict[str, np.ndarray] = {}
    for name, array in state.items():
        short = name.removeprefix(prefix)
        if name.startswith((*OF_TASKS, *architecture.pretraining)) or short in BUFFERS:
            continue
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"{name} is {a_type(array)}; expected a NumPy array. For a PyTorch "
                "model write {k: v.numpy() for k, v in model.state_dict().items()}"
            )
        newer = with_newer_name(short)
        if newer in arrays:
            raise ValueError(f"state has {newer} under two names; expected one")
        arrays[newer] = array
    if not arrays:
        raise ValueError(
            f"state has no weights of a {architecture.class_name()}, only "
            f"{', '.join(list(state)[:3])}"
        )
    first, dtype = next((name, array.dtype) for name, array in arrays.items())
    for name, array in arrays.items():
        if array.dtype.name not in checks.FLOATS or array.dtype != dtype:
            raise TypeError(
                f"{name} has dtype {array.dtype} and {first} {dtype}; expected all float32 or all "
                "float64. Convert them with .astype('float32')"
            )
    return arrays


def with_newer_name(name: str) -> str:
    """Return the name that a weight of a layer norm has in newer files."""
    newer = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    return newer.replace("LayerNorm.beta", "LayerNorm.bias")


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
    return _to(ARCHITECTURES["bert"], encoder, arrays)


def to_fnet(encoder: TextEncoder, arrays: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
    """Return the weights of a `TextEncoder` as those of ``FNetModel``; see `to_bert`."""
    return _to(ARCHITECTURES["fnet"], encoder, arrays)


def _to(
    architecture: Architecture, encoder: TextEncoder, arrays: Mapping[str, Any] | None
) -> dict[str, np.ndarray]:
    if not isinstance(encoder, TextEncoder):
        raise TypeError(f"encoder is {a_type(encoder)}; expected a TextEncoder")
    if arrays is not None:
        checks.instance("arrays", arrays, Mapping)
    if found := foreign_settings(architecture, encoder.config):
        raise ValueError(
            f"this encoder does not fit {architecture.class_name()}: it has {', '.join(found)}. "
            f"Expected an encoder as npformer.interop.from_{architecture.model_type} makes it"
        )
    values = values_of(encoder) if arrays is None else arrays
    places = architecture.places(values_of(encoder))
    if missing := [ours for ours in places if ours not in values]:
        raise ValueError(f"arrays has no {missing[0]!r}; expected one for each parameter")
    return their_layout(places, values)


def values_of(layer: Layer) -> dict[str, Any]:
    """Return all parameters by name, including those that are not trained."""
    return {name: parameter.value for name, parameter in layer.named_parameters().items()}
