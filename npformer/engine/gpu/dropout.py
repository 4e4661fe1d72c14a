"""Dropout, and a generator that draws its masks on the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from npformer.core import Array, array_module, checks, get_backend, like
from npformer.core.cut_masks import Cut, corner, split_by_sample
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import Source, contiguous, per_entry
from npformer.functional.dropout import draw_kept

DROPOUT = Source("dropout")


@dataclass(eq=False)
class DeviceGenerator:
    """Random numbers drawn on the device: Philox4x32-10 (Salmon et al., 2011).

    The masks of a NumPy generator are drawn on the host, the same for every backend, and uploaded.
    This generator draws on the GPU: entry i of the n-th draw depends on the seed, n and i alone. A
    part of a training step draws the entries that its samples have in the whole batch.

    Parameters
    ----------
    seed : int
        From 0 to 2^63 - 1.
    backend : str
        The backend of the arrays that `random` returns.

    Attributes
    ----------
    n_draws : int
        Number of arrays drawn so far. Setting it to a smaller number repeats them.
    samples : (int, int)
        The first sample of a part, and how many it has.
    cut : Cut, optional
        The padding that is cut from the part.
    """

    seed: int
    backend: str = "cupy"
    n_draws: int = 0
    samples: tuple[int, int] = 0, 1
    cut: Cut | None = None

    def __post_init__(self) -> None:
        self.seed = checks.whole("seed", self.seed, at_least=0, at_most=(1 << 63) - 1)

    def state(self) -> dict[str, int]:
        """Return the state for `restore`, in plain numbers."""
        return {"seed": self.seed, "n_draws": self.n_draws}

    def restore(self, state: Mapping[str, int]) -> None:
        """Continue where a generator was when it returned this state."""
        self.seed, self.n_draws = state["seed"], state["n_draws"]

    def step_key(self) -> DeviceGenerator:
        """Return the generator of a training step, with 2^32 draws for it alone; count one draw."""
        self.n_draws += 1
        return DeviceGenerator(self.seed, self.backend, self.n_draws << 32)

    def part(self, first: int, n_samples: int, cut: Cut | None = None) -> DeviceGenerator:
        """Return the generator of some samples of the step, of which padding may be `cut`."""
        return replace(self, samples=(first, n_samples), cut=cut)

    @cached_property
    def shared(self) -> DeviceGenerator:
        """A generator that draws the same in all parts of the step, from separate numbers."""
        first_draw = (self.n_draws >> 32 << 32) + (1 << 31)
        return DeviceGenerator(self.seed, self.backend, first_draw)

    def dropout_mask(self, shape: tuple[int, ...], rate: float, reference: Array) -> Array:
        """Return which entries are kept, on the backend of `reference`; `rate` to 32 bits."""
        shape_of_part = split_by_sample(shape, self.samples[1])
        shape_of_batch = shape_of_part if self.cut is None else self.cut.undone(shape_of_part)
        is_kept = array_module(reference).empty(shape_of_batch, dtype=bool)
        self._draw("draw_kept", is_kept, round(float(rate) * (1 << 32)))
        return contiguous(corner(is_kept, shape_of_part)).reshape(shape)

    def random(self, shape: tuple[int, ...], dtype: str = "float32") -> Array:
        """Return uniform numbers in [0, 1), with 24 bits each."""
        checks.choice("dtype", dtype, checks.FLOATS)
        uniform = get_backend(self.backend).module.empty(shape, dtype=dtype)
        self._draw("draw_uniform", uniform)
        return uniform

    def _draw(self, kernel: str, out: Array, *threshold: int) -> None:
        n = out.size
        rows = out.shape[0] if out.shape else 1
        first_sample, n_samples = self.samples
        is_shared = rows % n_samples != 0  # by all parts
        first = 0 if is_shared else first_sample * (n // n_samples)
        grid = per_entry(n + first % 4, per_thread=4)
        DROPOUT.launch(kernel, grid, out, n, *threshold, first, self.n_draws, self.seed)
        self.n_draws += 1


def mask_on_device(shape: tuple[int, ...], rate: float, generator: Any, reference: Array) -> Array:
    """Return which entries are kept, on the device, for a generator of NumPy or of the device."""
    if isinstance(generator, DeviceGenerator):
        return generator.dropout_mask(shape, rate, reference)
    return like(draw_kept(shape, float(rate), generator), reference)


def dropout(
    x: Array, rate: float, generator: Any = None, *, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.dropout`; the generator may be a `DeviceGenerator`."""
    checks.floating(x=x)
    checks.rate("rate", rate)
    if generator is None or rate == 0.0:
        return x, None
    is_kept = mask_on_device(x.shape, rate, generator, x)
    scale = 1.0 / (1.0 - float(rate))
    return _drop(x, is_kept, scale), (is_kept, scale)


def dropout_backward(dy: Array, cache: Any) -> Array:
    """Replaces `functional.dropout_backward`."""
    return dy if cache is None else _drop(dy, *cache)


def _drop(x: Array, is_kept: Array, scale: float) -> Array:
    x = contiguous(x)
    y = array_module(x).empty(x.shape, dtype=x.dtype)
    DROPOUT.launch("dropout", per_entry(x.size), x, is_kept, scale, y, x.size)
    return y
