"""Random numbers of a training step, which may be computed in parts.

A step draws one key. From it, everyone who computes a part of the batch makes the masks of the
part's own samples, so these do not depend on who computes what.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from npformer.core.arrays import is_numpy_generator

JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""Words from one mask to the next: 2^128 over the golden ratio, as in `PCG64.jumped`. A power of 2
would repeat the low bits of PCG64's state."""


def step_key(generator: Any) -> Any:
    """Return what `part_generator` takes: a number that the generator draws, always one a step.

    A generator of a device makes its own key if it has a method `step_key`, else it is the key.
    """
    if is_numpy_generator(generator):
        return int(generator.integers(1 << 63))
    return generator.step_key() if hasattr(generator, "step_key") else generator


def part_generator(key: Any, first: int, n_samples: int) -> Any:
    """Return the generator of a part of a step: `n_samples` samples of the batch from `first` on.

    Dropout draws from it what it draws for these samples in the whole batch. All other draws differ
    from part to part.
    """
    if not isinstance(key, int):
        return key.part(first, n_samples) if hasattr(key, "part") else key
    own = np.random.PCG64(np.random.SeedSequence(key, spawn_key=(first,)))
    return _type()(own, np.random.PCG64(key), key, first, n_samples)


@cache
def _type() -> Any:
    class PartGenerator(np.random.Generator):  # in here, because importing numpy.random takes time
        def __init__(self, own: Any, masks: Any, key: int, first: int, n_samples: int) -> None:
            super().__init__(own)
            self.masks, self.key, self.first, self.n_samples = masks, key, first, n_samples

        def __reduce__(self) -> Any:
            return _copied, (self.bit_generator, vars(self))

        def spawn(self, n_children: int) -> list[Any]:
            return np.random.Generator(self.bit_generator).spawn(n_children)

        @cached_property
        def shared(self) -> np.random.Generator:
            return np.random.default_rng(np.random.SeedSequence(self.key, spawn_key=(0, 0)))

        def mask_words(self, rows: int, words: int) -> tuple[float, np.ndarray]:
            """Return a number from [0, 1) for the whole batch, and `words` words for each row.

            The part's samples have as many rows each; else the rows are those of all parts.
            """
            of_sample, rest = divmod(rows, self.n_samples)
            before = 0 if rest else self.first * of_sample * words
            uniform = (self.masks.random_raw() >> 11) * 2.0**-53
            if before:
                self.masks.advance(before)
            drawn = self.masks.random_raw(rows * words)
            self.masks.advance(JUMP - 1 - before - rows * words)
            return uniform, drawn

    return PartGenerator


def _copied(own: Any, state: dict[str, Any]) -> Any:
    copy = _type()(own, None, 0, 0, 1)
    vars(copy).update(state)
    return copy
