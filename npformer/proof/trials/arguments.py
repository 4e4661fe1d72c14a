"""Guess the arguments of other people's constructors and functions by their names.

All sizes differ: 2 samples of 5 tokens, 6 features in, 3 out, 7 hidden ones. So a pass that
confuses two of them is wrong in size or in value.
"""

import inspect
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from npformer.proof.foreign.gradient_names import plain

BATCH, LENGTH, WIDTH, OUT, HIDDEN, HEADS, VOCABULARY, CLASSES, LAYERS = 2, 5, 6, 3, 7, 2, 11, 3, 2

SIZES: dict[str, int] = {
    "dmodel dim d hiddensize nembd embeddim embeddingdim modeldim width features nfeatures "
    "numfeatures normalizedshape infeatures inputsize nin din inputdim indim inchannels ninputs "
    "inputs ind insize fanin dinput channels size embedsize embsize emb demb n": WIDTH,
    "outfeatures outputsize nout dout outputdim outdim outchannels noutputs outd outsize fanout "
    "neurons nneurons units doutput": OUT,
    "dff hidden hiddendim nhidden hiddenunits mlpdim ffndim ffdim dhidden dinner innerdim hdim "
    "intermediatesize dmlp ffhidden": HIDDEN,
    "nheads numheads heads nhead numhead h nkvheads numkvheads": HEADS,
    "vocabsize vocab ntokens numembeddings nvocab vocabulary v ntoken numtokens srcvocabsize "
    "tgtvocabsize": VOCABULARY,
    "maxlen seqlen blocksize contextlength npositions maxseqlen maxlength seqlength length t "
    "contextsize maxposition numpositions sequencelength nctx": LENGTH,
    "nclasses numclasses classes nlabels ntags numlabels numtags": CLASSES,
    "nlayers numlayers depth nblocks numblocks layers blocks": LAYERS,
    "batchsize batch": BATCH,
    "dk dv dhead headdim dq headsize": WIDTH // HEADS,
    "seed randomseed randomstate": 0,
}
NUMBERS: dict[str, float] = {
    "p dropout rate droprate dropprob dropoutrate pdrop dropoutprob": 0.3,
    "eps epsilon": 1e-5,
    "lr learningrate": 0.1,
    "scale": 1.5,
    "reg weightdecay smoothing labelsmoothing": 0.1,
    "temperature": 1.3,
    "base theta ropetheta": 100.0,
}
NAMES: dict[str, str] = {"dtype": "float64", "activation nonlinearity act": "relu"}
FLAGS: dict[str, bool] = {
    "training train istraining": False,
    "bias usebias causal": True,
}

IDS = {"ids", "tokens", "idx", "indices", "tokenids", "inputids", "words", "positions", "tokenid"}
LABELS = {"y", "t", "target", "targets", "label", "labels", "ytrue", "gold", "truth", "classes"}
MASKS = {"mask", "attnmask", "attentionmask", "paddingmask", "keymask"}
GENERATORS = {"rng", "generator", "randomgenerator"}

ARRAYS: dict[str, tuple[int, ...]] = {
    "w weight weights kernel w1 wq wk wv wo": (WIDTH, OUT),
    "b bias biases b1": (OUT,),
    "gamma beta gain g": (WIDTH,),
    "wte table emb embedding embeddings e tokenembedding": (VOCABULARY, WIDTH),
    "wpe pos positionembedding positions pe": (LENGTH, WIDTH),
}
"""Shapes of arrays of parameters that a function takes."""

SIZE_NAME = re.compile(r"^(n|num)_|_(size|dim|features|channels|units|width)$")
"""Names of other sizes."""

LABEL_KINDS = ("ids", "one hot", "same")
"""What labels may be: the index of a class, a row of zeros and a one, or numbers as x has."""

LABEL_KINDS_OF_IDS = ("tokens", "ids")
"""What labels may be beside ids: each next token, or a class of each sample."""

TOKENS: tuple[int, ...] = (BATCH, LENGTH)
SHAPES: tuple[tuple[int, ...], ...] = ((BATCH, LENGTH, WIDTH), (4, WIDTH), (WIDTH,))
"""Shapes of x that are tried, one after the other; a vector only if nothing else is taken."""


class UnknownArgument(Exception):
    """An argument whose value cannot be told from its name."""


def _look_up(table: dict[str, Any], name: str) -> Any:
    for names, value in table.items():
        if plain(name) in names.split():
            return value
    return None


def constructor_arguments(kind: type) -> dict[str, Any]:
    """Return values for the required arguments of a class. Raises UnknownArgument."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return {}
    values: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            values[parameter.name] = _setting(parameter.name)
    return values


def _setting(name: str) -> Any:
    for table in (SIZES, NUMBERS, FLAGS, NAMES):
        value = _look_up(table, name)
        if value is not None:
            return value
    if plain(name) in GENERATORS:
        return np.random.default_rng(0)
    if SIZE_NAME.search(name.lower()):
        return OUT
    raise UnknownArgument(name)


def trial_inputs(
    forward: Any, sizes: dict[str, Any], takes_ids: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield arguments of a forward pass to try: x of several shapes, labels of several kinds.

    `sizes` are the arguments that an object was built with: one with a vocabulary is first given
    ids below it. `takes_ids` says that it is given nothing else.
    """
    names = _required_names(forward)
    vocabularies = [size for name, size in sizes.items() if _look_up(SIZES, name) == VOCABULARY]
    ids = _ids(TOKENS, below=vocabularies[0] if vocabularies else LENGTH)
    has_labels = any(plain(name) in LABELS for name in names[1:])
    if takes_ids or vocabularies or plain(names[0]) in IDS:
        for label_kind in LABEL_KINDS_OF_IDS if has_labels else ("",):
            yield _arguments(names, ids, TOKENS, label_kind, first_are_ids=True)
    if not takes_ids:
        for shape, label_kind in product(SHAPES, LABEL_KINDS if has_labels else ("",)):
            yield _arguments(names, ids, shape, label_kind)


def _arguments(
    names: list[str],
    ids: np.ndarray,
    shape: tuple[int, ...],
    label_kind: str,
    first_are_ids: bool = False,
) -> dict[str, Any]:
    """Return a value for each argument."""
    arguments: dict[str, Any] = {}
    for position, name in enumerate(names):
        is_label = position > 0 and plain(name) in LABELS
        if is_label and label_kind == "tokens":
            arguments[name] = np.roll(ids, 1, axis=1)
        elif is_label:
            arguments[name] = _labels(shape, label_kind, np.random.default_rng(position))
        elif plain(name) in IDS or (first_are_ids and position == 0):
            arguments[name] = ids
        else:
            arguments[name] = _argument(name, position, shape, label_kind)
    return arguments


def _required_names(forward: Any) -> list[str]:
    """Return the names of the arguments that have no defaults; at least x."""
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):
        return ["x"]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [p for p in parameters if p.kind not in variable]
    return [p.name for p in named if p.default is p.empty] or ["x"]


def _ids(shape: tuple[int, ...], below: int) -> np.ndarray:
    """Return whole numbers, the first two of which are equal."""
    ids = np.random.default_rng(1).integers(0, below, size=shape)
    ids.flat[1] = ids.flat[0]
    return ids


def _argument(name: str, position: int, shape: tuple[int, ...], label_kind: str) -> Any:
    """Return the value of an argument of a forward pass that is neither ids nor labels."""
    word = plain(name)
    rng = np.random.default_rng(position + 2)
    if word in MASKS:
        return None
    if word in GENERATORS:
        return np.random.default_rng(0)
    setting = _setting_of_pass(name) if position else None
    if setting is not None:
        return setting
    array_shape = _look_up(ARRAYS, name) if position else None
    x = rng.normal(size=array_shape or shape)
    if label_kind and re.search(r"prob|^p$|pred$", word):
        return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    return x


def _setting_of_pass(name: str) -> Any:
    """Return a number, flag or number of heads that a function takes; None if it is an array."""
    for table in (NUMBERS, FLAGS):
        value = _look_up(table, name)
        if value is not None:
            return value
    return HEADS if "head" in plain(name) else None


def _labels(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> np.ndarray:
    ids = rng.integers(0, min(shape[-1], CLASSES), size=shape[:-1])
    if kind == "ids":
        return np.asarray(ids)
    if kind == "one hot":
        return np.eye(shape[-1])[ids]
    return rng.normal(size=shape)


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a constructor's call in Python, for a person to read."""
    written = []
    for key, value in arguments.items():
        text = "rng" if isinstance(value, np.random.Generator) else repr(value)
        written.append(f"{key}={text}")
    return f"{name}({', '.join(written)})"


def write_shapes(arguments: dict[str, Any]) -> str:
    """Return what an object was called with: arrays by their shapes."""
    written = []
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            ids = " of ids" if value.dtype.kind in "iu" and plain(name) not in IDS else ""
            written.append(f"{name} {value.shape}{ids}")
        elif value is not None and not isinstance(value, np.random.Generator):
            written.append(f"{name}={value!r}")
    return ", ".join(written)
