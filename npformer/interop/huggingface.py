"""Weights of BERT and FNet as Hugging Face's transformers name and lay them out, there and back.

    encoder = npformer.interop.from_bert(state, config)
    hidden, pooled = encoder(ids, mask, types)

Nothing of PyTorch is needed, only a mapping of names to NumPy arrays, as safetensors gives it::

    import json, safetensors.numpy
    state = safetensors.numpy.load_file("model.safetensors")
    config = json.load(open("config.json"))

or a model in memory: ``state = {k: v.numpy() for k, v in bert.state_dict().items()}`` and
``config = bert.config.to_dict()``.

What comes in is the encoder with its pooler. The heads of a pretrained model (``cls.``,
``classifier.``, ``qa_outputs.``) are left out. To fine-tune a classifier, carry the weights over by
name::

    model = npformer.SequenceClassifier(
        encoder.config,
        n_classes,
        vocab_size=encoder.vocab_size,
        pooling="pooler",
        dtype=encoder.dtype,
    )
    for name, array in encoder.parameters().items():
        model.parameters()[name][...] = array

Two things differ in training, none at evaluation: there is no dropout of attention weights
(``attention_probs_dropout_prob``), and the embedding of the padding token is trained like any
other, where PyTorch keeps its gradient at 0 (``padding_idx``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.models import EncoderConfig
from npformer.text_encoder import TextEncoder

HIDDEN_ACTS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""Their names (``hidden_act``) to ours."""

HEADS = ("cls.", "classifier.", "qa_outputs.")
"""How the names of what stands on an encoder begin."""

BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
"""Constants that older files hold: 0, 1, 2, ... and zeros."""

_TABLES = ("embed.tokens.weight", "embed.positions.table", "embed.types.weight")
_COMMON = ("hidden_size", "num_hidden_layers", "intermediate_size", "max_position_embeddings")
_SIZES = {
    "bert": (*_COMMON, "vocab_size", "type_vocab_size", "num_attention_heads"),
    "fnet": (*_COMMON, "vocab_size", "type_vocab_size"),
}
_OTHERS = ("hidden_act", "hidden_dropout_prob", "layer_norm_eps")
_MIXERS = {"bert": "attention", "fnet": "fourier"}
_MODEL = {"bert": "BertModel", "fnet": "FNetModel"}


# From there ---------------------------------------------------------------------------------------


def from_bert(state: Mapping[str, np.ndarray], hf_config: Mapping[str, Any]) -> TextEncoder:
    """Return a `TextEncoder` with the weights of a BERT.

    Parameters
    ----------
    state : mapping of str to array
        float32 or float64, under the names of ``BertModel``; ``bert.`` before them is taken off.
        Older files write LayerNorm's ``weight`` and ``bias`` as ``gamma`` and ``beta``: both do.
    hf_config : mapping
        ``BertConfig(...).to_dict()`` or what config.json holds.

    Returns
    -------
    encoder : TextEncoder
        In the dtype of `state`, with a pooler if `state` has one.

    Raises
    ------
    TypeError
        A value is no NumPy array, or not all are float32 or all float64.
    ValueError
        The configuration asks for what npformer does not have, or a name is missing, unknown or
        has another shape than the configuration says.

    Notes
    -----
    Devlin et al., 2019, arXiv 1810.04805. Weights of linear maps are (out, in) there and (in, out)
    here; nothing else is changed, and `to_bert` gives back exactly what came.
    """
    return _from("bert", state, hf_config, padding="refuse")


def from_fnet(
    state: Mapping[str, np.ndarray], hf_config: Mapping[str, Any], *, padding: str = "refuse"
) -> TextEncoder:
    """Return a `TextEncoder` with the weights of an FNet.

    Parameters
    ----------
    state : mapping of str to array
        As in `from_bert`, under the names of ``FNetModel``; ``fnet.`` before them is taken off.
    hf_config : mapping
        ``FNetConfig(...).to_dict()`` or what config.json holds.
    padding : {"refuse", "per_length", "zero"}
        What to do with a padding mask: see `EncoderConfig`. The published model takes none; it
        mixes padding as it mixes any token, which is what happens here without a mask.

    Returns
    -------
    encoder : TextEncoder

    Raises
    ------
    TypeError, ValueError
        As in `from_bert`.

    Notes
    -----
    Lee-Thorp et al., 2021, arXiv 2105.03824.
    """
    return _from("fnet", state, hf_config, padding=padding)


def _from(
    kind: str, state: Mapping[str, Any], hf_config: Mapping[str, Any], *, padding: str
) -> TextEncoder:
    config = _config(kind, hf_config, padding)
    theirs = _arrays(kind, state)
    pooler = any(name.startswith("pooler.") for name in theirs)
    dtype = str(next(iter(theirs.values())).dtype)
    encoder = TextEncoder(config, int(hf_config["vocab_size"]), pooler=pooler, dtype=dtype)
    names = _names(kind, config.n_layers, pooler)
    parameters = encoder.parameters()
    problems = [f"{name} is missing" for name in names.values() if name not in theirs]
    problems += [f"{name} is unknown" for name in theirs if name not in names.values()]
    for ours, name in names.items():
        if name in theirs:
            got, expected = theirs[name].shape, _laid_out(ours, parameters[ours]).shape
            if got != expected:
                problems.append(f"{name} has shape {got}, and hf_config says {expected}")
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise ValueError(
            f"state does not fit hf_config: {'; '.join(problems[:3])}{more}. Expected the weights "
            f"of the {_MODEL[kind]} that this configuration belongs to"
        )
    for ours, name in names.items():
        parameters[ours][...] = _laid_out(ours, theirs[name])
    return encoder


def _config(kind: str, hf_config: Mapping[str, Any], padding: str) -> EncoderConfig:
    """Translate a configuration, and refuse what npformer does not have."""
    if not isinstance(hf_config, Mapping):
        raise TypeError(
            f"hf_config is a {type(hf_config).__name__}; expected a mapping. Write "
            "model.config.to_dict(), or json.load of config.json"
        )
    given = dict(hf_config)
    for key in (*_SIZES[kind], *_OTHERS):
        if key not in given:
            raise ValueError(
                f"hf_config has no {key!r}; expected all of {', '.join((*_SIZES[kind], *_OTHERS))}"
            )
    for key in _SIZES[kind]:
        given[key] = checks.positive(key, given[key])
    only = {
        "model_type": kind,
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "embedding_size": given["hidden_size"],
    }
    for key, value in only.items():
        if given.get(key, value) != value:
            raise ValueError(
                f"hf_config has {key} = {given[key]!r}; expected {value!r}, for npformer has no "
                "other"
            )
    if given.get("pruned_heads"):
        raise ValueError("hf_config has pruned_heads; expected none: every layer has all its heads")
    if given["hidden_act"] not in HIDDEN_ACTS:
        raise ValueError(
            f"hf_config has hidden_act = {given['hidden_act']!r}; expected one of "
            f"{', '.join(map(repr, HIDDEN_ACTS))}"
        )
    d_model, n_heads = given["hidden_size"], given.get("num_attention_heads", 1)
    if kind == "bert" and d_model % n_heads:
        raise ValueError(
            f"hf_config has hidden_size = {d_model} and num_attention_heads = {n_heads}; expected "
            "heads that divide the size, for each gets an equal share"
        )
    return EncoderConfig(
        d_model=d_model,
        n_layers=given["num_hidden_layers"],
        n_heads=n_heads if kind == "bert" else 1,
        d_ff=given["intermediate_size"],
        max_len=given["max_position_embeddings"],
        mixer=_MIXERS[kind],
        activation=HIDDEN_ACTS[given["hidden_act"]],
        dropout=float(given["hidden_dropout_prob"]),
        positions="learned",
        scale_embeddings=False,
        n_token_types=given["type_vocab_size"],
        embedding_norm=True,
        embedding_projection=kind == "fnet",
        padding=padding,
        norm_eps=float(given["layer_norm_eps"]),
    )


def _arrays(kind: str, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Take prefix, heads and buffers off, and check that what is left are arrays of one dtype."""
    if not isinstance(state, Mapping) or not state:
        what = "empty" if isinstance(state, Mapping) else f"a {type(state).__name__}"
        raise TypeError(f"state is {what}; expected a mapping of names to NumPy arrays")
    prefix = f"{kind}." if any(name.startswith(f"{kind}.") for name in state) else ""
    arrays: dict[str, np.ndarray] = {}
    for name, array in state.items():
        if name.startswith(HEADS):
            continue
        short = name.removeprefix(prefix)
        if short in BUFFERS:
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
            f"state holds nothing of a {_MODEL[kind]}, only {', '.join(list(state)[:3])}"
        )
    first = next(iter(arrays))
    for name, array in arrays.items():
        if array.dtype.name not in checks.FLOATS or array.dtype != arrays[first].dtype:
            raise TypeError(
                f"{name} has dtype {array.dtype} and {first} {arrays[first].dtype}; expected all "
                "float32 or all float64. Convert them with .astype('float32')"
            )
    return arrays


# And back -----------------------------------------------------------------------------------------


def to_bert(encoder: TextEncoder, arrays: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
    """Return the weights of a `TextEncoder` as ``BertModel`` names them and lays them out.

    Parameters
    ----------
    encoder : TextEncoder
        With the parts that BERT has, such as `from_bert` makes.
    arrays : mapping of str to array, optional
        What to lay out instead of the weights, under npformer's names: their gradients.

    Returns
    -------
    state : dict of str to array
        Copies, on the host. For PyTorch:
        ``model.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})``.

    Raises
    ------
    TypeError
        Not a TextEncoder.
    ValueError
        Its configuration is none of a BERT; the message says in what.
    """
    return _to("bert", encoder, arrays)


def to_fnet(encoder: TextEncoder, arrays: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
    """Return the weights of a `TextEncoder` as ``FNetModel`` names them and lays them out.

    Parameters
    ----------
    encoder : TextEncoder
        With the parts that FNet has, such as `from_fnet` makes.
    arrays : mapping of str to array, optional
        What to lay out instead of the weights, under npformer's names: their gradients.

    Returns
    -------
    state : dict of str to array
        Copies, on the host.

    Raises
    ------
    TypeError, ValueError
        As in `to_bert`.
    """
    return _to("fnet", encoder, arrays)


def _to(kind: str, encoder: TextEncoder, arrays: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    if not isinstance(encoder, TextEncoder):
        raise TypeError(f"encoder is a {type(encoder).__name__}; expected a TextEncoder")
    config = encoder.config
    only: dict[str, Any] = {
        "norm": "post",
        "ffn": "linear",
        "positions": "learned",
        "scale_embeddings": False,
        "embedding_norm": True,
        "embedding_projection": kind == "fnet",
        "share_layers": False,
        "causal": False,
    }
    found = [
        f"{key} = {getattr(config, key)!r}" for key in only if getattr(config, key) != only[key]
    ]
    if set(config.mixers()) != {_MIXERS[kind]}:
        found.append(f"mixer = {config.mixer!r}")
    if config.activation not in HIDDEN_ACTS.values():
        found.append(f"activation = {config.activation!r}")
    if config.n_token_types == 0:
        found.append("n_token_types = 0")
    if found:
        raise ValueError(
            f"this encoder is no {_MODEL[kind]}: it has {', '.join(found)}. Expected what "
            f"npformer.interop.from_{kind} makes"
        )
    values = encoder.parameters() if arrays is None else arrays
    names = _names(kind, config.n_layers, encoder.pool is not None)
    missing = [ours for ours in names if ours not in values]
    if missing:
        raise ValueError(f"arrays has no {missing[0]!r}; expected one for each parameter")
    return {
        theirs: np.array(_laid_out(ours, to_numpy(values[ours])), order="C")
        for ours, theirs in names.items()
    }


# Names and layouts --------------------------------------------------------------------------------


def _laid_out(ours: str, array: Any) -> Any:
    """Turn the weight of a linear map, (in, out) <-> (out, in); leave everything else."""
    return array.T if array.ndim == 2 and ours not in _TABLES else array


def _names(kind: str, n_layers: int, pooler: bool) -> dict[str, str]:
    """Return our name -> their name for every parameter, in their order."""
    names = {
        "embed.tokens.weight": "embeddings.word_embeddings.weight",
        "embed.positions.table": "embeddings.position_embeddings.weight",
        "embed.types.weight": "embeddings.token_type_embeddings.weight",
        "embed.norm.gamma": "embeddings.LayerNorm.weight",
        "embed.norm.beta": "embeddings.LayerNorm.bias",
    }
    maps: dict[str, str] = {}
    if kind == "fnet":
        maps["embed.projection"] = "embeddings.projection"
    for i in range(n_layers):
        ours, theirs = f"encoder.blocks.{i}", f"encoder.layer.{i}"
        if kind == "bert":
            for part in ("query", "key", "value"):
                maps[f"{ours}.mixer.{part}"] = f"{theirs}.attention.self.{part}"
            maps[f"{ours}.mixer.output"] = f"{theirs}.attention.output.dense"
        mixing = "attention" if kind == "bert" else "fourier"
        maps[f"{ours}.mixer_norm"] = f"{theirs}.{mixing}.output.LayerNorm"
        maps[f"{ours}.feed_forward.expand"] = f"{theirs}.intermediate.dense"
        maps[f"{ours}.feed_forward.contract"] = f"{theirs}.output.dense"
        maps[f"{ours}.feed_forward_norm"] = f"{theirs}.output.LayerNorm"
    if pooler:
        maps["pool.dense"] = "pooler.dense"
    for mine, yours in maps.items():
        weight, bias = ("gamma", "beta") if mine.endswith("norm") else ("weight", "bias")
        names[f"{mine}.{weight}"] = f"{yours}.weight"
        names[f"{mine}.{bias}"] = f"{yours}.bias"
    return names
