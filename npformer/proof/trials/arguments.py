"""Guess the arguments of other people's constructors by their names, and write calls.

All sizes differ: 2 samples of 5 tokens, 6 features in, 3 out, 7 hidden ones. So a pass that
confuses two of them is wrong in size or in value.
"""

import inspect
import re
from typing import Any

import numpy as np

from npformer.proof.foreign.gradient_names import plain
from npformer.proof.trials.sizes import (
    BATCH,
    CLASSES,
    HEADS,
    HIDDEN,
    LAYERS,
    LENGTH,
    OUT,
    VOCABULARY,
    WIDTH,
    look_up,
)
from npformer.proof.trials.weights import weight_shape, window_setting

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
    "poolsize poolh poolw poolheight poolwidth": 2,
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
    "training train istraining trainflg": False,
    "bias usebias causal": True,
}

IDS = {"ids", "tokens", "idx", "indices", "tokenids", "inputids", "words", "positions", "tokenid"}
LABELS = {"y", "t", "target", "targets", "label", "labels", "ytrue", "gold", "truth", "classes"}
MASKS = {"mask", "attnmask", "attentionmask", "paddingmask", "keymask"}
GENERATORS = {"rng", "generator", "randomgenerator"}
LISTS_OF_SIZES = {"sizes", "layersizes", "layerdims", "dims", "layersdims"}

SIZE_NAME = re.compile(r"^(n|num)_|_(size|dim|features|channels|units|width)$")
"""Names of other sizes."""

LARGEST_DEFAULT = 64
"""A larger default of a size, such as 3 * 32 * 32 pixels, is replaced by a small one."""


class UnknownArgument(Exception):
    """An argument whose value cannot be told from its name."""


def constructor_arguments(kind: type) -> dict[str, Any]:
    """Return values for the required arguments of a class, and small sizes for large ones.

    Raises UnknownArgument.
    """
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return {}
    names = [parameter.name for parameter in parameters]
    values: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            values[parameter.name] = _setting(parameter.name, names, kind.__name__)
        elif _is_large(parameter):
            values[parameter.name] = look_up(SIZES, parameter.name)
    return values


def _is_large(parameter: inspect.Parameter) -> bool:
    """Whether the default of an argument is a large size, which may be any other one."""
    default = parameter.default
    is_whole = isinstance(default, int) and not isinstance(default, bool)
    return is_whole and default > LARGEST_DEFAULT and look_up(SIZES, parameter.name) is not None


def _setting(name: str, names: list[str], owner: str) -> Any:
    """Return the value of an argument of a class that is called `owner`."""
    of_window = window_setting(name, owner)
    if of_window is not None:
        return of_window
    for table in (SIZES, NUMBERS, FLAGS, NAMES):
        value = look_up(table, name)
        if value is not None:
            return value
    if plain(name) in LISTS_OF_SIZES:
        return [WIDTH, HIDDEN, OUT]
    if plain(name) in GENERATORS:
        return np.random.default_rng(0)
    shape = weight_shape(name, names, owner)
    if shape is not None:
        return np.random.default_rng(names.index(name) + 2).normal(size=shape)
    if SIZE_NAME.search(name.lower()):
        return OUT
    raise UnknownArgument(name)


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a constructor's call in Python, for a person to read."""
    written = []
    for key, value in arguments.items():
        text = "rng" if isinstance(value, np.random.Generator) else repr(value)
        if isinstance(value, np.ndarray):
            text = f"array of shape {value.shape}"
        written.append(f"{key}={text}")
    return f"{name}({', '.join(written)})"


def write_shapes(arguments: dict[str, Any]) -> str:
    """Return what an object was called with: arrays by their shapes."""
    written = []
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            ids = " of ids" if value.dtype.kind in "iu" and plain(name) not in IDS else ""
            written.append(f"{name} {value.shape}{ids}")
        elif isinstance(value, dict):  # a forward pass may add arrays to it
            numbers = {k: v for k, v in value.items() if not isinstance(v, np.ndarray)}
            written.append(f"{name}={numbers!r}")
        elif value is not None and not isinstance(value, np.random.Generator):
            written.append(f"{name}={value!r}")
    return ", ".join(written)
