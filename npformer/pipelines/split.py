"""Parting labelled samples: some to train on, and some to measure with."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import checks


def stratified(labels: np.ndarray, share: float, seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a larger and of a smaller part, each in their order.

    The smaller part has `share` of the samples, and of each class as nearly as whole numbers
    allow; a class with a single sample stays in the larger part. `seed` decides which samples.
    """
    checks.number("share", share, above=0.0)
    if not share < 1.0:
        raise ValueError(f"the share is {share}; expected a number between 0 and 1, such as 0.1")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    names, numbers = np.unique(labels, return_inverse=True)
    taken = []
    wanted = share * np.bincount(numbers, minlength=len(names))
    owed = 0.0  # what rounding has left for the next class
    for number in range(len(names)):
        members = order[numbers[order] == number]
        n = min(round(wanted[number] + owed), len(members) - 1)
        owed += wanted[number] - n
        taken.append(members[: max(n, 0)])
    smaller = np.sort(np.concatenate(taken))
    if len(smaller) == 0:
        raise ValueError(
            f"{len(labels)} samples are too few to set {share} of them aside; expected some of "
            "each class. Use more samples, a larger share, or none"
        )
    return np.setdiff1d(np.arange(len(labels)), smaller), smaller


def repeated(samples: Sequence[Any], labels: Sequence[Any]) -> np.ndarray:
    """Return which samples occur before with the same label, as a bool array."""
    seen: set[Any] = set()
    found = np.zeros(len(samples), dtype=bool)
    for i, pair in enumerate(zip(samples, labels, strict=True)):
        found[i] = pair in seen
        seen.add(pair)
    return found
