"""What bugs and invariants look with: numbers, a small configuration, layers found in a model."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np

from npformer import functional as F
from npformer.core import Array, Layer
from npformer.mixers import AveragingMixer
from npformer.models import EncoderConfig

WIDTH = 8
"""Features of a token, wherever an invariant makes tokens for a layer."""

HEADS = 2

Kind = TypeVar("Kind", bound=Layer)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normal numbers in float64.

    Parameters
    ----------
    *shape : int
    seed : int
    """
    return np.random.default_rng(seed).normal(size=shape)


TOKENS = draw(2, 4, WIDTH)
"""Two sequences of four tokens."""

KEPT = np.array([[True] * 4, [True, True, False, False]])
"""A mask for `TOKENS`: the second sequence has two."""


def small(**changes: Any) -> EncoderConfig:
    """Return a configuration that is small in every direction.

    Parameters
    ----------
    **changes
        Of `EncoderConfig`.
    """
    sizes = {"d_model": WIDTH, "n_layers": 3, "n_heads": HEADS, "d_ff": 12, "max_len": 5}
    return EncoderConfig(**(sizes | changes))


def found(layer: Layer, kind: type[Kind]) -> list[Kind]:
    """Return every layer of a kind in a model, or the layer itself; a shared one once.

    Parameters
    ----------
    layer : Layer
    kind : type of Layer
        Subclasses are of this kind too.

    Raises
    ------
    TypeError
        There is none: nothing would be looked at.
    """
    by_id = {id(one): one for _, one in layer.layers() if isinstance(one, kind)}
    if not by_id:
        raise TypeError(f"{type(layer).__name__} has no {kind.__name__} in it; expected one")
    return list(by_id.values())


def weights_of(mixer: AveragingMixer, seed: int = 0) -> Array:
    """Return the weights that a mixer averages with: those it uses, whatever it says of them.

    A copy of the mixer is given values that are one-hot, so that what it returns are the weights.

    Parameters
    ----------
    mixer : AveragingMixer
        In float64, `WIDTH` wide.
    seed : int
        Draws the tokens, as many as a head has features.

    Returns
    -------
    weights : array, shape (heads, length, length)
    """
    probe, length = copy.deepcopy(mixer), WIDTH // mixer.n_heads
    x = draw(length, WIDTH, seed=seed)
    one_hot = np.tile(np.eye(length), mixer.n_heads)  # [length, d_model]: the same for every head
    for linear, weight in (
        (probe.value, np.linalg.pinv(x) @ one_hot),
        (probe.output, np.eye(WIDTH)),
    ):
        linear.weight.value[...] = weight
        if linear.bias is not None:
            linear.bias.value[...] = 0.0
    return F.split_heads(probe(x[None]), mixer.n_heads)[0]
