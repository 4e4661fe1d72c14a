"""Dropout, and a generator that draws its masks on the device."""

import math
from typing import Any

from npformer.core import Array, array_module, checks, get_backend, like
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import ELEMENTWISE, Source, contiguous, elementwise_blocks
from npformer.functional.dropout import check_dropout, draw_kept

DROPOUT = Source("dropout")


class DeviceGenerator:
    """Random numbers drawn on the device: Philox4x32-10 (Salmon et al., 2011).

    The masks of a NumPy generator are drawn on the host, the same for every backend, and uploaded.
    This generator draws on the GPU: entry i of the n-th draw depends on the seed, n and i alone.

    Parameters
    ----------
    seed : int
        From 0 to 2^63 - 1.
    backend : str
        The backend of the arrays that `random` returns.

    Attributes
    ----------
    n_draws : int
        How many arrays were drawn. Setting it back repeats them.
    """

    def __init__(self, seed: int, backend: str = "cupy") -> None:
        self.seed = checks.whole("seed", seed, at_least=0)
        if self.seed >= 1 << 63:
            raise ValueError(f"seed is {seed}; expected a whole number below 2^63")
        self.backend = backend
        self.n_draws = 0

    def kept(self, shape: tuple[int, ...], rate: float, reference: Array) -> Array:
        """Return which entries are kept, on the backend of `reference`; `rate` to 32 bits."""
        kept = array_module(reference).empty(shape, dtype=bool)
        self._draw("draw_kept", reference, kept, kept.size, round(float(rate) * (1 << 32)))
        return kept

    def random(self, shape: tuple[int, ...], dtype: str = "float32") -> Array:
        """Return uniform numbers in [0, 1), with 24 bits each."""
        checks.choice("dtype", dtype, checks.FLOATS)
        uniform = get_backend(self.backend).module.empty(shape, dtype=dtype)
        self._draw("draw_uniform", uniform, uniform, uniform.size)
        return uniform

    def _draw(self, kernel: str, reference: Array, *arguments: Any) -> None:
        n = math.prod(arguments[0].shape)
        blocks = elementwise_blocks(n, each=4)
        DROPOUT.launch(kernel, reference, blocks, ELEMENTWISE, *arguments, self.n_draws, self.seed)
        self.n_draws += 1


def kept_on_device(shape: tuple[int, ...], rate: float, generator: Any, reference: Array) -> Array:
    """Return which entries are kept, on the device, whichever kind of generator draws."""
    if isinstance(generator, DeviceGenerator):
        return generator.kept(shape, rate, reference)
    return like(draw_kept(shape, float(rate), generator), reference)


def dropout(
    x: Array, rate: float, generator: Any = None, *, context: EngineContext
) -> tuple[Array, Any]:
    """`functional.dropout`; the generator may be a `DeviceGenerator`."""
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
