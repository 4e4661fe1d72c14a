"""Initial values, drawn on the CPU: a seed means the same model on every backend.

Everything is drawn in float64 and then rounded, so a float32 and a float64 model of the same seed
have the same weights up to that rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from npformer.core import checks
from npformer.core.registry import Registry

Initializer = Callable[[Any, tuple[int, ...]], np.ndarray]
Seed: TypeAlias = "int | np.random.Generator"  # in words: importing numpy.random takes time


def generator(seed: Seed) -> np.random.Generator:
    """Return a random generator from a seed, or the generator itself.

    Parameters
    ----------
    seed : int or numpy.random.Generator

    Raises
    ------
    TypeError
        Anything else, None included: a model that nobody can build again is refused.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise TypeError(
            f"seed is {seed!r}; expected a whole number from 0 or a numpy.random.Generator"
        )
    return np.random.default_rng(int(seed))


def undrawn() -> np.random.Generator:
    """Return a generator for a model whose weights do not matter: `draw` leaves them 0.

    What a layer draws from it without `draw` is random all the same.
    """
    return _undrawn_type()(np.random.PCG64(0))  # type: ignore[no-any-return]


@cache
def _undrawn_type() -> Any:
    class Undrawn(np.random.Generator):  # not at the module's level: numpy.random takes time
        pass

    return Undrawn


def draw(
    initializer: Initializer,
    rng: np.random.Generator | None,
    shape: tuple[int, ...],
    dtype: str,
) -> np.ndarray:
    """Return initial values, drawn in float64 and rounded to `dtype`.

    Parameters
    ----------
    initializer : callable
        ``initializer(rng, shape) -> array``.
    rng : numpy.random.Generator or None
        None for initializers that draw nothing.
    shape : tuple of int
    dtype : {"float32", "float64"}

    Raises
    ------
    ValueError
        The initializer gave another shape.
    """
    checks.choice("dtype", dtype, checks.FLOATS)
    if isinstance(rng, _undrawn_type()):
        return np.zeros(shape, dtype)
    values = np.asarray(initializer(rng, shape))
    if values.shape != tuple(shape):
        raise ValueError(
            f"the initializer gave values of shape {values.shape}; expected {tuple(shape)}, which "
            "it was asked for"
        )
    return values.astype(dtype)


def xavier_uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """U(-a, a) with a = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    Keeps the variance of activations and of gradients about the same from layer to layer. The
    last two axes are (in, out); those before them, a convolution's kernel, multiply both fans.
    """
    receptive = math.prod(shape[:-2])
    bound = math.sqrt(6.0 / (receptive * (shape[-2] + shape[-1])))
    return rng.uniform(-bound, bound, shape)


def xavier_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """N(0, 2 / (fan_in + fan_out)), the variance of `xavier_uniform` (Glorot and Bengio, 2010)."""
    receptive = math.prod(shape[:-2])
    return rng.normal(0.0, math.sqrt(2.0 / (receptive * (shape[-2] + shape[-1]))), shape)


def he_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """N(0, 2 / fan_in), for layers before a ReLU (He et al., 2015)."""
    return rng.normal(0.0, math.sqrt(2.0 / math.prod(shape[:-1])), shape)


def normal(std: float = 0.02) -> Initializer:
    """N(0, std^2); 0.02 is BERT's."""
    checks.not_negative("std", std)

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.normal(0.0, std, shape)

    return draw


def per_head(initializer: Initializer) -> Initializer:
    """Draw each head's matrix, along the first axis, on its own."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.stack([initializer(rng, shape[1:]) for _ in range(shape[0])])

    return draw


def zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """All 0: biases, and the shift of a layer norm. Draws nothing."""
    return np.zeros(shape)


def ones(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """All 1: the scale of a layer norm. Draws nothing."""
    return np.ones(shape)


INITIALIZERS: Registry[Initializer] = Registry(
    "initializer",
    {
        "xavier_uniform": lambda: xavier_uniform,
        "xavier_normal": lambda: xavier_normal,
        "he_normal": lambda: he_normal,
        "normal": normal,
        "zeros": lambda: zeros,
        "ones": lambda: ones,
    },
    table="npformer.core.INITIALIZERS",
    function="a function (generator, shape) -> array",
)
"""What ``EncoderConfig(initializer=...)`` takes. Builders are called with their options alone and
return a function ``(generator, shape) -> array`` of float64."""


def sinusoids(length: int, d_model: int) -> np.ndarray:
    """Sinusoidal positions (Vaswani et al., 2017, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same.

    Parameters
    ----------
    length, d_model : int

    Returns
    -------
    table : array, shape (length, d_model)
    """
    position = np.arange(length)[:, None]
    pair = np.arange(0, d_model, 2)
    angle = position / 10000.0 ** (pair / d_model)  # [length, ceil(d_model / 2)]
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle[:, : d_model // 2])
    return table


def fourier_matrix(length: int) -> np.ndarray:
    """Return the matrix of the discrete Fourier transform: entry (j, k) is exp(-2 pi i j k / n).

    Parameters
    ----------
    length : int
        n.

    Returns
    -------
    matrix : complex array, shape (length, length)
    """
    index = np.arange(length)
    # j k is reduced before the division: large angles would lose digits.
    return np.asarray(np.exp(-2j * np.pi * ((index[:, None] * index) % length) / length))
