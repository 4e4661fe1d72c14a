"""Initial values. A seed gives the same model on every backend and, up to rounding, in every dtype.

Values are drawn on the CPU in float64, then rounded and moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.core.out_of_memory import enough_memory
from npformer.core.support.registry import Registry
from npformer.core.support.wording import describe

Initializer = Callable[[Any, tuple[int, ...]], np.ndarray]


def undrawn(at_most: int = 2**62) -> np.random.Generator:
    """Return a generator for a model whose weights are loaded later: `draw` returns zeros.

    After `at_most` of them it raises ValueError, because a file may state any size.
    """
    rng = _undrawn_type()(np.random.PCG64(0))
    rng.left = at_most
    return rng  # type: ignore[no-any-return]


@cache
def _undrawn_type() -> Any:
    class Undrawn(np.random.Generator):  # in a function, because importing numpy.random takes time
        pass

    return Undrawn


def draw(
    initializer: Initializer, rng: np.random.Generator | None, shape: tuple[int, ...], dtype: str
) -> np.ndarray:
    """Return initial values in `dtype`. `rng` may be None if the initializer draws nothing."""
    checks.choice("dtype", dtype, checks.FLOATS)
    if isinstance(rng, _undrawn_type()):
        rng.left -= math.prod(shape)
        if rng.left < 0:
            raise ValueError(f"it asks for an array of shape {shape}, more than its tensors hold")
        return np.zeros(shape, dtype)
    if not callable(initializer):
        raise TypeError(f"init is {describe(initializer)}; expected a function of rng and shape")
    with enough_memory("a parameter", shape):
        drawn = initializer(rng, shape)
        if not isinstance(drawn, np.ndarray) or drawn.dtype.kind not in "fiu":
            kind = drawn.dtype if isinstance(drawn, np.ndarray) else type(drawn).__name__
            raise TypeError(f"the initializer returned {kind}; expected a NumPy array of numbers")
        if drawn.shape != tuple(shape):
            raise ValueError(
                f"the initializer returned values of shape {drawn.shape}; expected {tuple(shape)}"
            )
        return drawn.astype(dtype)


def xavier_uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """U(-a, a) with a = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    This keeps the variance of activations and gradients about the same from layer to layer. The
    last two axes are (in, out). An axis before them, as in a convolution's kernel, multiplies both.
    """
    bound = math.sqrt(6.0 / _fans(shape))
    return rng.uniform(-bound, bound, shape)


def xavier_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """N(0, 2 / (fan_in + fan_out)), the variance of `xavier_uniform` (Glorot and Bengio, 2010)."""
    return rng.normal(0.0, math.sqrt(2.0 / _fans(shape)), shape)


def _fans(shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-2]) * (shape[-2] + shape[-1])


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
    """Draw the matrix of each attention head separately; heads are the first axis."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.stack([initializer(rng, shape[1:]) for _ in range(shape[0])])

    return draw


def zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """All 0, for biases and the shift of a layer norm. Draws nothing."""
    return np.zeros(shape)


def uniform(low: float, high: float) -> Initializer:
    """U(low, high)."""
    return lambda rng, shape: rng.uniform(low, high, shape)


def constant(value: float) -> Initializer:
    """Give all entries one value. Draws nothing."""
    return lambda rng, shape: np.full(shape, value)


def harmonics(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Entry n of the last axis is pi n: the frequencies of S4D-Lin (Gu et al., 2022)."""
    return np.broadcast_to(math.pi * np.arange(shape[-1]), shape)


def decaying(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """N(0, a^2j) for row j, scaled so that the squares of a column sum to 1 on average.

    Each column has its own a = exp(-1 / s), with s from 1 up to the number of rows.
    """
    rows, columns = shape
    decay = np.exp(-np.arange(rows)[:, None] / np.geomspace(1.0, max(rows, 2), columns))
    drawn: np.ndarray = rng.normal(size=shape) * decay / np.sqrt((decay * decay).sum(axis=0))
    return drawn


def ones(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """All 1, for the scale of a layer norm. Draws nothing."""
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
"""What ``EncoderConfig(initializer=...)`` takes. Builders get nothing but their options, and
return a function ``(generator, shape) -> array`` of float64."""
