"""A fraction of the data, held out for validation."""

from __future__ import annotations

from typing import Any

import numpy as np


def validation_share(validation: Any) -> float | None:
    """Return `validation` if it is a number, a fraction of the data; None for anything else."""
    if isinstance(validation, bool) or not isinstance(validation, int | float | np.number):
        return None
    if not 0.0 < validation < 1.0:
        raise ValueError(
            f"validation is {validation}; expected a fraction of the data between 0 and 1, such as "
            "0.1, or (x, y)"
        )
    return float(validation)


def split_rows(
    strata: np.ndarray | None, counts: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those held out, both in the order of the data.

    Parameters
    ----------
    strata : array, shape (n,), or None
        The class of each sample. Every class is held out in proportion to its size, to within one
        sample, and keeps at least one sample to train on. None: classes are ignored.
    counts : array, shape (n,)
        How much each sample counts in the loss.
    share : float
    rng : numpy.random.Generator
    """
    n = len(counts)
    n_held_out = round(share * n)
    if strata is not None:
        _, inverse, sizes = np.unique(strata, return_inverse=True, return_counts=True)
        n_held_out = min(n_held_out, n - len(sizes))
    if not 0 < n_held_out < n:
        raise ValueError(
            f"{n} samples are too few to set {share} of them aside; expected at least 1, and one "
            "of each class to train on. Pass a larger fraction, more samples, or other data to "
            "validate on"
        )
    order = rng.permutation(n)
    if strata is None:
        held_out = order[:n_held_out]
    else:
        held_out = _choose_by_class(order, inverse, sizes, n_held_out)
    training_rows = np.delete(np.arange(n), held_out)
    held_out_rows = np.sort(held_out)
    for rows, purpose in ((training_rows, "to train on"), (held_out_rows, "held out")):
        if not counts[rows].any():
            raise ValueError(
                f"of the samples {purpose} with validation={share}, none has a label and a weight "
                "above 0; expected at least one. Pass another fraction or seed, or "
                "validation=(x, y)"
            )
    return training_rows, held_out_rows


def _choose_by_class(
    order: np.ndarray, inverse: np.ndarray, sizes: np.ndarray, n_held_out: int
) -> np.ndarray:
    """Return the rows held out: from each class, in proportion to its size, the first in `order`.

    `inverse` has the class number of each row, and `sizes` the number of rows in each class.
    """
    # The largest remainder method, but at least one row of each class stays for training.
    quotas = sizes * (n_held_out / sizes.sum())
    n_by_class: np.ndarray = quotas.astype("int64")  # below sizes: n_held_out < sizes.sum()
    n_missing = n_held_out - int(n_by_class.sum())
    while n_missing > 0:
        has_room = n_by_class < sizes - 1
        remainders = np.where(has_room, quotas - n_by_class, -np.inf)
        n_classes = min(n_missing, int(has_room.sum()))
        n_by_class[np.argsort(-remainders, kind="stable")[:n_classes]] += 1
        n_missing = n_held_out - int(n_by_class.sum())
    rows_by_class = [order[inverse[order] == k][:n] for k, n in enumerate(n_by_class)]
    return np.concatenate(rows_by_class)
