"""Shapes of weights and settings of windows that a function or a class is given."""

import re
from collections.abc import Sequence
from typing import Any

from npformer.proof.foreign.gradient_names import plain
from npformer.proof.trials.sizes import HIDDEN, LENGTH, OUT, VOCABULARY, WIDTH, look_up

KERNEL = 3
"""The height and width of a convolution's kernel."""

POOL = 2
"""The height, width and stride of a pooling window."""

WEIGHTS: dict[str, tuple[int, ...]] = {
    "w weight weights kernel w1 wq wk wv wo": (WIDTH, OUT),
    "b bias biases b1": (OUT,),
    "gamma beta gain g": (WIDTH,),
    "wte table emb embedding embeddings e tokenembedding": (VOCABULARY, WIDTH),
    "wpe pos positionembedding positions pe": (LENGTH, WIDTH),
}
"""Shapes of arrays of parameters, where x has its features along the last axis."""

FIRST_WEIGHTS = {"w", "weight", "weights", "theta", "kernel"}
"""What may come before x: ``softmax_loss(W, X, y)``."""

WEIGHTS_ONLY = {"wx", "wxh", "wh", "whh"}
"""Names of weights of a recurrent layer, which have no other meaning."""

STATES = {"h", "hprev", "prevh", "h0", "hidden", "c", "cprev", "prevc", "c0", "state"}
"""What a recurrent layer takes beside x."""

DICTS: dict[str, dict[str, Any]] = {
    "bn batchnorm ln layernorm norm": {"mode": "train", "eps": 1e-5, "momentum": 0.9},
    "gn groupnorm": {"eps": 1e-5},
    "dropout do": {"mode": "train", "p": 0.3, "seed": 0},
    "conv": {"stride": 1, "pad": 1},
    "pool": {"pool_height": POOL, "pool_width": POOL, "stride": POOL},
}
"""What is in a dictionary of settings, ``bn_param``, by the word before ``param``."""


def weight_shape(name: str, names: Sequence[str], owner: str) -> tuple[int, ...] | None:
    """Return the shape of an array of parameters; None if a name is not that of one.

    `names` are all arguments of the function or class, which is called `owner`.
    """
    words = {plain(other) for other in names}
    word = plain(name)
    if words & WEIGHTS_ONLY:
        recurrent = _recurrent_shape(word, words, owner.lower())
        if recurrent is not None:
            return recurrent
    if "conv" in owner.lower() and word in ("w", "weight", "weights", "kernel", "filters"):
        return (OUT, WIDTH, KERNEL, KERNEL)
    if "embed" in owner.lower() and word in ("w", "weight", "weights"):
        return (VOCABULARY, WIDTH)
    return look_up(WEIGHTS, name)  # type: ignore[no-any-return]


def _recurrent_shape(word: str, words: set[str], owner: str) -> tuple[int, ...] | None:
    """Return the shape of a weight of a recurrent layer, with the gates side by side."""
    n_gates = 1
    if "lstm" in owner or words & {"c", "cprev", "prevc", "c0"}:
        n_gates = 4
    elif "gru" in owner:
        n_gates = 3
    shapes = {
        "wx": (WIDTH, n_gates * HIDDEN),
        "wxh": (WIDTH, n_gates * HIDDEN),
        "wh": (HIDDEN, n_gates * HIDDEN),
        "whh": (HIDDEN, n_gates * HIDDEN),
        "b": (n_gates * HIDDEN,),
        "bh": (n_gates * HIDDEN,),
    }
    return shapes.get(word)


def window_setting(name: str, owner: str) -> int | None:
    """Return the kernel, stride or padding of a convolution or a pooling; None for other names."""
    is_pool = "pool" in owner.lower()
    word = plain(name)
    if word in ("kernelsize", "ksize", "filtersize", "kernel", "windowsize"):
        return POOL if is_pool else KERNEL
    if word in ("stride", "strides"):
        return POOL if is_pool else 1
    if word in ("pad", "padding"):
        return 0 if is_pool else 1
    return None


def settings_of(name: str) -> dict[str, Any] | None:
    """Return a dictionary of settings, ``bn_param``; None if a name is not that of one."""
    match = re.fullmatch(r"(\w+?)_?(params?|config|cfg)", name.lower())
    settings = None if match is None else look_up(DICTS, match[1])
    return None if settings is None else dict(settings)
