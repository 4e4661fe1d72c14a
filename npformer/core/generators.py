"""Random generators: of a seed, and of a training step, which may be computed in parts.

A step draws one key. From it, whoever computes a part of the batch makes the masks of that part's
samples, so these do not depend on who computes what.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from npformer.core.cut_masks import Cut
from npformer.core.support.wording import describe

Seed: TypeAlias = "int | np.random.Generator | None"  # quoted: importing numpy.random takes time


def from_seed(seed: Seed) -> np.random.Generator:
    """Return a random generator from a seed, or the generator itself; for None, a new one."""
    is_whole_number = (
        isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
    )
    if not (is_whole_number or seed is None or isinstance(seed, np.random.Generator)):
        raise TypeError(
            f"seed is {describe(seed)}; expected a whole number of at least 0 or a "
            "numpy.random.Generator"
        )
    return np.random.default_rng(seed)  # a generator is its own


def child_of_seed(seed: int, number: int) -> np.random.SeedSequence:
    """Return child `number` of a seed, as numpy.random.SeedSequence names it.

    Its numbers are neither those of the seed itself nor those of another child of any seed. A pair
    (seed, number) would be one longer seed: (seed, 0) is `seed`, and (7, k) is k * 2^32 + 7.
    """
    return np.random.SeedSequence(seed, spawn_key=(number,))


def seed_of_child(seed: int, number: int) -> int:
    """Return a seed of 63 bits, of child `number` of a seed, for what takes a whole number."""
    (word,) = child_of_seed(seed, number).generate_state(1, "uint64")
    return int(word) >> 1


def step_key(generator: Any) -> Any:
    """Return what `part_generator` takes: a number that the generator draws, exactly one a step.

    A device's generator makes its own key if it has a method `step_key`; else it is the key.
    """
    if isinstance(generator, np.random.Generator):
        return int(generator.integers(1 << 63))
    return generator.step_key() if hasattr(generator, "step_key") else generator


def part_generator(key: Any, first: int, n_samples: int, cut: Cut | None = None) -> Any:
    """Return the generator of a part of a step: `n_samples` samples of the batch from `first` on.

    Dropout draws from it what it draws for these samples in the whole batch, also for the tokens
    that are left if padding was `cut`. All other draws differ from part to part.
    """
    if isinstance(key, int):
        from npformer.core.generator_of_part import PartGenerator  # late: it needs numpy.random

        own_bits = np.random.PCG64(child_of_seed(key, first))
        mask_bits = np.random.PCG64(key)
        return PartGenerator(own_bits, mask_bits, key, first, n_samples, cut)
    if not hasattr(key, "part"):
        return key
    if cut is None:
        return key.part(first, n_samples)
    return key.part(first, n_samples, cut)
