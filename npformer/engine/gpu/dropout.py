"""Dropout, with a generator that draws on the device for those who want no mask from the host."""

from __future__ import annotations

import math
from typing import Any

from npformer.core import Array, array_module, checks, get_backend, like
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import ELEMENTWISE, Source, contiguous, elementwise_blocks
from npformer.functional.dropout import check_dropout, draw_kept

DROPOUT = Source("dropout")


class DeviceGenerator:
    """Random numbers that are drawn where they are used: Philox4x32-10 (Salmon et al., 2011).

    A NumPy generator draws masks on the host, the same on every backend, and they are uploaded.
    This one draws on the GPU and nothing is uploaded: entry i of the n-th draw is a function of
    the seed, n and i alone.

    Parameters
    ----------
    seed : int
        From 0 to 2^63 - 1.
    backend : str
        Where `random` draws.

    Attributes
    ----------
    seed : int
    draws : int
        How many arrays were drawn. Setting it back repeats them.
    """

    def __init__(self, seed: int, backend: str = "cupy") -> None:
        self.seed = checks.whole("seed", seed, at_least=0)
        if self.seed >= 1 << 63:
            raise ValueError(f"seed is {seed}; expected a whole number below 2^63")
        self.backend = backend
        self.draws = 0

    def kept(self, shape: tuple[int, ...], rate: float, near: Array) -> Array:
        """Return which entries stay: each is dropped with probability `rate`.

        Parameters
        ----------
        shape : tuple of int
        rate : float
            Taken to 32 bits.
        near : array
            Gives the backend, and the dtype of the kernel.

        Returns
        -------
        kept : bool array
        """
        kept = array_module(near).empty(shape, dtype=bool)
        self._draw("draw_kept", near, kept, kept.size, round(float(rate) * (1 << 32)))
        return kept

    def random(self, shape: tuple[int, ...], dtype: str = "float32") -> Array:
        """Return uniform numbers from 0 up to, not including, 1, with 24 bits each.

        Parameters
        ----------
        shape : tuple of int
        dtype : {"float32", "float64"}
        """
        checks.choice("dtype", dtype, checks.FLOATS)
        uniform = get_backend(self.backend).module.empty(shape, dtype=dtype)
        self._draw("draw_uniform", uniform, uniform, uniform.size)
        return uniform

    def _draw(self, kernel: str, near: Array, *arguments: Any) -> None:
        n = math.prod(arguments[0].shape)
        blocks = elementwise_blocks(n, each=4)
        DROPOUT.launch(kernel, near, blocks, ELEMENTWISE, *arguments, self.draws, self.seed)
        self.draws += 1


def kept_on_device(shape: tuple[int, ...], rate: float, generator: Any, near: Array) -> Array:
    """Return which entries stay, on the device, whoever draws them.

    Parameters
    ----------
    shape : tuple of int
    rate : float
    generator : DeviceGenerator, numpy.random.Generator or CuPy's
        NumPy's draws on the host, so that a seed means the same run on every backend.
    near : array
        Gives the backend.

    Returns
    -------
    kept : bool array
    """
    if isinstance(generator, DeviceGenerator):
        return generator.kept(shape, rate, near)
    return like(draw_kept(shape, float(rate), generator), near)


def dropout(
    x: Array, rate: float, generator: Any = None, *, context: EngineContext
) -> tuple[Array, Any]:
    """`functional.dropout`.

    Parameters
    ----------
    x, rate, generator
        As there; the generator may be a `DeviceGenerator`.
    context : EngineContext
        Not used: CuPy has its own pool of memory.
    """
    check_dropout(x, rate, generator)
    if generator is None or rate == 0.0:
        return x, None
    kept = kept_on_device(x.shape, rate, generator, x)
    scale = 1.0 / (1.0 - float(rate))
    return _drop(x, kept, scale), (kept, scale)


def dropout_backward(dy: Array, cache: Any) -> Array:
    """`functional.dropout_backward`."""
    return dy if cache is None else _drop(dy, *cache)


def _drop(x: Array, kept: Array, scale: float) -> Array:
    x = contiguous(x)
    y = array_module(x).empty(x.shape, dtype=x.dtype)
    DROPOUT.launch("drop", x, elementwise_blocks(x.size), ELEMENTWISE, x, kept, scale, y, x.size)
    return y
