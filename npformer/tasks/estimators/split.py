"""Splitting labelled samples: some to train on, and some to measure with."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.held_out import chosen_by_class


def stratified(labels: np.ndarray, share: float, seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a larger and of a smaller part, each in order.

    The smaller part has `share` of all samples, and of each class as nearly as whole numbers
    allow; a class with a single sample stays in the larger part. `seed` decides which samples.
    """
    checks.number("share", share, above=0.0)
    if not share < 1.0:
        raise ValueError(f"the share is {share}; expected a number between 0 and 1, such as 0.1")
    order = np.random.default_rng(seed).permutation(len(labels))
    _, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    held = min(round(share * len(labels)), len(labels) - len(sizes))
    if held < 1:
        raise ValueError(
            f"{len(labels)} samples are too few to set {share} of them aside; expected some of "
            "each class. Use more samples or a larger share, or set none aside"
        )
    smaller = np.sort(chosen_by_class(order, inverse, sizes, held))
    return np.setdiff1d(np.arange(len(labels)), smaller), smaller


def repeated(samples: Sequence[Any], labels: Sequence[Any]) -> np.ndarray:
    """Return which samples occurred before with the same label, as a bool array."""
    seen: set[Any] = set()
    found = np.zeros(len(samples), dtype=bool)
    for i, pair in enumerate(zip(samples, labels, strict=True)):
        found[i] = pair in seen
        seen.add(pair)
    return found
