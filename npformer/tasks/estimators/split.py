"""Splitting labelled samples: some to train on, and some to measure with."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.held_out import split_rows
from npformer.training.storage.drawn import Drawn, digest_of


def stratified_split(labels: np.ndarray, share: float, seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a larger and of a smaller part, each in order.

    The smaller part has `share` of all samples, and of each class as nearly as whole numbers
    allow; a class with a single sample stays in the larger part. `seed` decides which samples.
    """
    checks.number("share", share, above=0.0)
    checks.rate("share", share)
    return split_rows(labels, np.ones(len(labels)), share, np.random.default_rng(seed))


def recall_rows(
    drawn: Drawn, name: str, labels: np.ndarray, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of `stratified_split`, or those that a training has drawn already."""
    if drawn.folder is None:
        return stratified_split(labels, share, seed)
    basis = {"labels": digest_of(labels.tolist()), "share": float(share), "seed": int(seed)}
    return drawn.rows(name, basis, len(labels), lambda: stratified_split(labels, share, seed))


def find_repeats(samples: Sequence[Any], labels: Sequence[Any]) -> np.ndarray:
    """Return which samples occurred before with the same label, as a bool array."""
    earlier: set[Any] = set()
    is_repeated = np.zeros(len(samples), dtype=bool)
    for i, pair in enumerate(zip(samples, labels, strict=True)):
        is_repeated[i] = pair in earlier
        earlier.add(pair)
    return is_repeated
