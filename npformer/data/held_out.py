"""A share of the data, held out for validation."""

from __future__ import annotations

from typing import Any

import numpy as np


def validation_share(validation: Any) -> float | None:
    """Return `validation` if it is a number, and so a share of the data; None for anything else."""
    if isinstance(validation, bool) or not isinstance(validation, int | float | np.number):
        return None
    if not 0.0 < validation < 1.0:
        raise ValueError(
            f"validation is {validation}; expected a share of the data between 0 and 1, such as "
            "0.1, or (x, y)"
        )
    return float(validation)


def held_out_rows(
    strata: np.ndarray | None, counts: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those held out, both in the order of the data.

    Parameters
    ----------
    strata : array, shape (n,), or None
        The class of each sample. Each is held out in proportion to its size, to within one sample,
        and keeps at least one sample to train on. None: any samples.
    counts : array, shape (n,)
        How much each sample counts in the loss.
    share : float
    rng : numpy.random.Generator
    """
    n = len(counts)
    held = round(share * n)
    if strata is not None:
        _, inverse, sizes = np.unique(strata, return_inverse=True, return_counts=True)
        held = min(held, n - len(sizes))
    if not 0 < held < n:
        raise ValueError(
            f"{n} samples are too few to set {share} of them aside; expected at least 1, and one "
            "of each class to train on. Pass a larger share, more samples, or others to validate on"
        )
    order = rng.permutation(n)
    chosen = order[:held] if strata is None else chosen_by_class(order, inverse, sizes, held)
    parts = np.delete(np.arange(n), chosen), np.sort(chosen)
    for rows, purpose in zip(parts, ("to train on", "held out"), strict=True):
        if not counts[rows].any():
            raise ValueError(
                f"of the samples {purpose} with validation={share}, none has a label and a weight "
                "above 0; expected at least one. Pass another share or seed, or validation=(x, y)"
            )
    return parts


def chosen_by_class(
    order: np.ndarray, inverse: np.ndarray, sizes: np.ndarray, held: int
) -> np.ndarray:
    """Return the rows held out, the first in an order: each class in proportion to its size.

    `inverse` is the number of each row's class, and `sizes` how many rows the classes have.
    """
    # By the largest remainder, but never a whole class.
    quota = sizes * (held / sizes.sum())
    taken: np.ndarray = quota.astype("int64")  # less than the class, because held < sizes.sum()
    while (missing := held - int(taken.sum())) > 0:
        remainder = np.where(taken < sizes - 1, quota - taken, -np.inf)
        open_ = int((taken < sizes - 1).sum())
        most = np.argsort(-remainder, kind="stable")[: min(missing, open_)]
        taken[most] += 1
    return np.concatenate([order[inverse[order] == k][:m] for k, m in enumerate(taken)])
