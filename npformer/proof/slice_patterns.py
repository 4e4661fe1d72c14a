"""Errors of whole slices of a gradient: some rows are zero, wrong, or multiplied by a number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npformer.proof.evidence import STRICT, Evidence, Pattern, WrongGradient

MOST_LISTED = 6
"""The most slices that are named by number."""

MOST = 0.5
"""A slice is wrong if more than this share of its entries is."""

FEWEST = 4
"""Fewer right entries may be so by chance."""

RIGHT = 1e-6
"""A slice is right if its error is at most this share of the largest derivative."""


def find_slices(wrong: WrongGradient) -> Pattern | None:
    """Find an axis along which each slice has a factor of its own, or some slices are right."""
    if wrong.numeric.ndim == 0 or wrong.comparable.sum() < 4:
        return None
    return _find_ids(wrong) or _find_masked(wrong) or _find_factors(wrong) or _find_few(wrong)


def _find_ids(wrong: WrongGradient) -> Pattern | None:
    """Find what the rows of a table have to do with the ids that look them up."""
    n_rows = wrong.numeric.shape[0]
    for ids in wrong.evidence.inputs.values():
        if ids.dtype.kind not in "iu" or not ids.size or ids.min() < 0 or ids.max() >= n_rows:
            continue
        counts = np.bincount(ids.reshape(-1), minlength=n_rows)
        pattern = _find_repeated(wrong, ids, counts > 1, counts) or _find_tied(wrong, counts == 0)
        if pattern is not None:
            return pattern
    return None


def _find_repeated(
    wrong: WrongGradient, ids: np.ndarray, repeated: np.ndarray, counts: np.ndarray
) -> Pattern | None:
    """Explain what happens to ids that occur more than once."""
    if not repeated.any():
        return None
    column = (-1,) + (1,) * (wrong.numeric.ndim - 1)
    if wrong.explains(wrong.numeric / np.maximum(counts, 1).reshape(column)):
        words = "the terms of an id that occurs more than once are averaged, and not added"
        return Pattern("averaged ids", words)
    rows = _list_numbers(np.flatnonzero(repeated))
    words = f"wrong only in the rows of ids that occur more than once ({rows}): their terms "
    words += "are assigned, and not added"
    if any(wrong.explains(candidate) for candidate in _assigned(wrong, ids)):
        return Pattern("repeated ids", words)
    if wrong.evidence.jacobian is None and _are_wrong(wrong, repeated):
        return Pattern("repeated ids", words)
    return None


def _assigned(wrong: WrongGradient, ids: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the gradients in which each row has the terms of its last or first occurrence alone."""
    jacobian, dy, shape = wrong.evidence.jacobian, wrong.evidence.dy, wrong.numeric.shape
    if jacobian is None or dy is None or dy.shape[: ids.ndim] != ids.shape:
        return
    terms = jacobian.reshape(*shape, ids.size, -1) * dy.reshape(ids.size, -1)
    terms = terms.sum(axis=-1)
    for places in (np.arange(ids.size), np.arange(ids.size)[::-1]):
        candidate = wrong.numeric.copy()
        for place in places:  # the last one stays
            row = ids.reshape(-1)[place]
            candidate[row] = terms[row, ..., place]
        yield candidate


def _find_tied(wrong: WrongGradient, absent: np.ndarray) -> Pattern | None:
    """Explain a gradient that lacks one of the two uses of a table: as look-up, and as output."""
    if not absent.any() or absent.all() or not _derivative(wrong, absent).any():
        return None  # a table that is only looked up has no gradient in absent rows
    if not np.where(wrong.comparable, wrong.analytic, 0.0)[absent].any():
        words = "zero in the rows of ids that do not occur: of its two uses, the look-up alone "
        return Pattern("tied", words + "has a gradient")
    if _are_wrong(wrong, ~absent):
        words = "wrong only in the rows of ids that occur: of its two uses, the look-up has no "
        return Pattern("tied", words + "gradient")
    return None


def _derivative(wrong: WrongGradient, rows: np.ndarray) -> np.ndarray:
    """Return the derivative in some rows, with 0 for rounding errors."""
    numeric = np.where(wrong.comparable, wrong.numeric, 0.0)
    return np.asarray(np.where(np.abs(numeric) > RIGHT * _largest(numeric), numeric, 0.0)[rows])


def _find_masked(wrong: WrongGradient) -> Pattern | None:
    """Find a mask that separates the right entries from the wrong ones."""
    entries = np.abs(wrong.error) > RIGHT * _largest(wrong.numeric[wrong.comparable])
    for name, mask in wrong.evidence.inputs.items():
        fits = mask.dtype.kind == "b" and mask.shape == wrong.numeric.shape[: mask.ndim]
        if not fits or min(entries[mask].size, entries[~mask].size) < FEWEST:
            continue
        if not entries[mask].any() and entries[~mask].mean() > MOST:
            return Pattern("masked", f"wrong only where {name} is False")
        if not entries[~mask].any() and not wrong.analytic[mask].any():
            return Pattern("masked", f"zero where {name} is True: the mask is inverted")
    return None


def _find_factors(wrong: WrongGradient) -> Pattern | None:
    """Find an axis along which each slice is the derivative times a number."""
    for axis in range(wrong.numeric.ndim):
        rows, numeric = _rows(wrong, axis)
        if len(rows) < 2 or rows.shape[1] < 3:
            continue
        squares = (numeric * numeric).sum(1)
        present = squares > (RIGHT**2) * squares.max(initial=0.0)
        factors = (rows * numeric).sum(1) / np.where(present, squares, 1.0)
        factors = np.where(present, factors, 0.0)
        column = [1] * wrong.numeric.ndim
        column[axis] = -1
        if wrong.explains(wrong.numeric * factors.reshape(column)):
            return _describe_factors(factors, present, axis, wrong.evidence)
    return None


def _describe_factors(
    factors: np.ndarray, present: np.ndarray, axis: int, evidence: Evidence
) -> Pattern:
    """Return what the factors of slices say; `present` is where there is a derivative."""
    zero = present & (np.abs(factors) <= STRICT)
    right = present & (np.abs(factors - 1.0) <= STRICT)
    if np.array_equal(zero | right, present):
        return _describe_zeros(zero, right, axis)
    numbers = ", ".join(f"{factor:.4g}" for factor in factors[present][:MOST_LISTED])
    more = ", ..." if present.sum() > MOST_LISTED else ""
    for name, mask in evidence.inputs.items():
        if mask.dtype.kind != "b" or mask.ndim != 2 or axis or len(mask) != len(factors):
            continue
        counts = mask.sum(1)
        shares = factors[present] * counts[present]
        if shares.size and np.ptp(shares) <= STRICT * np.abs(shares).max():
            words = f"each sample is divided by how many tokens {name} keeps of it"
            return Pattern("averaged tokens", words)
    words = f"multiplied by a number for each index of axis {axis}: {numbers}{more}"
    return Pattern("factors", words)


def _describe_zeros(zero: np.ndarray, right: np.ndarray, axis: int) -> Pattern:
    rows = np.flatnonzero(right)
    n = len(right)
    if np.array_equal(rows, [n - 1]):
        words = f"only the last index of axis {axis} has a gradient; the earlier ones get nothing"
    elif np.array_equal(rows, [0]):
        words = f"only the first index of axis {axis} has a gradient; the later ones get nothing"
    elif zero.sum() <= right.sum():
        words = f"zero for {_list_numbers(np.flatnonzero(zero))} of axis {axis}, right elsewhere"
    else:
        words = f"right for {_list_numbers(rows)} of axis {axis}, and zero elsewhere"
    return Pattern("slices without gradient", words)


def _find_few(wrong: WrongGradient) -> Pattern | None:
    """Find an axis of which at most half of the indices are wrong, and the others right."""
    for axis in range(wrong.numeric.ndim):
        n = wrong.numeric.shape[axis]
        if n < 2 or wrong.numeric.size // n < 3:
            continue
        slices = np.asarray(_wrong_entries(wrong, axis).any(axis=1))
        if 0 < 2 * slices.sum() <= n and _are_wrong(wrong, slices, axis):
            numbers = _list_numbers(np.flatnonzero(slices))
            return Pattern("slices", f"wrong only at {numbers} of axis {axis}, right elsewhere")
    return None


def _wrong_entries(wrong: WrongGradient, axis: int) -> np.ndarray:
    """Return which entries are wrong, as rows along an axis."""
    errors = np.abs(np.moveaxis(wrong.error, axis, 0)).reshape(wrong.error.shape[axis], -1)
    return np.asarray(errors > RIGHT * _largest(wrong.numeric[wrong.comparable]))


def _are_wrong(wrong: WrongGradient, slices: np.ndarray, axis: int = 0) -> bool:
    """Return whether these slices are wrong in most entries, and all others right in several."""
    entries = _wrong_entries(wrong, axis)
    right = entries[~slices]
    are_wrong = bool((entries[slices].mean(axis=1) > MOST).all())
    return are_wrong and not right.any() and right.size >= FEWEST


def _rows(wrong: WrongGradient, axis: int) -> Iterator[np.ndarray]:
    """Return both gradients as rows, one for each index of an axis; 0 where unknown."""
    gradients = (np.where(wrong.comparable, g, 0.0) for g in (wrong.analytic, wrong.numeric))
    return (np.moveaxis(g, axis, 0).reshape(g.shape[axis], -1) for g in gradients)


def _largest(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=0.0))


def _list_numbers(numbers: np.ndarray) -> str:
    """Return indices in words: "index 3" or "indices 1, 2 and 5"."""
    if len(numbers) == 1:
        return f"index {numbers[0]}"
    if len(numbers) > MOST_LISTED:
        return f"{len(numbers)} indices, {numbers[0]} the first,"
    return f"indices {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
