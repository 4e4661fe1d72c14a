"""Positions of sequences: values of some are replaced, and outputs of some are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

LEAKS = {"float64": 1e-9, "float32": 1e-5}
"""The largest change of an output, relative to the largest output, that is only rounding."""


def view_by_position(x: np.ndarray, batched: bool) -> np.ndarray:
    """Return a view whose first axes are those of a mask: (batch, length), or (length)."""
    return np.moveaxis(x, -2, 1 if batched else 0)


def replace_positions(
    inputs: list[np.ndarray], where: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return inputs with other values at some positions; where others attend to them, keys only.

    A single input is x. Of several, the first are queries, which stay.
    """
    replaced = [x.copy() for x in inputs]
    for x in replaced if len(replaced) == 1 else replaced[1:]:
        view = view_by_position(x, batched=where.ndim == 2)
        if view.shape[: where.ndim] == where.shape:
            view[where] = 3.0 * rng.normal(size=view[where].shape)
    return replaced


def outputs_at(y: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return the outputs of some positions; all if y has no axis of positions."""
    if y.ndim >= where.ndim + 1:
        view = view_by_position(y, batched=where.ndim == 2)
        if view.shape[: where.ndim] == where.shape:
            return np.asarray(view[where])
    return y


def relative_change(before: np.ndarray, after: np.ndarray) -> float:
    """Return the largest change, relative to the largest entry; NaN counts as infinite."""
    scale = max(float(np.abs(np.nan_to_num(before)).max(initial=0.0)), 1e-300)
    both_nan = np.isnan(before) & np.isnan(after)
    change = np.where(both_nan, 0.0, np.nan_to_num(np.abs(after - before), nan=np.inf))
    return float(change.max(initial=0.0)) / scale


def positions_hidden_by(mask: np.ndarray, name: str | None, shape: tuple[int, ...]) -> Any:
    """Return which positions a mask hides, in the usual sense; None if its shape does not say.

    True, or 1, shows a position; an added mask hides with large negative numbers. In a mask called
    key_padding_mask True hides, as in PyTorch.
    """
    while mask.ndim > len(shape) and 1 in mask.shape[1:]:
        mask = mask.squeeze(axis=1 + mask.shape[1:].index(1))
    if mask.shape != shape:
        return None
    if mask.dtype.kind == "f" and mask.min() < -1.0:
        return mask < -1.0
    if name is not None and "key_padding" in name and mask.dtype == bool:
        return mask
    return mask == 0


def usual_masks(shown: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield masks that show these positions, with their convention in words; "" for the first.

    First booleans of which True shows, of which True hides, then numbers that are added to scores;
    of shape (batch, length), then with an axis of queries, then with one of heads, too.
    """
    added = np.where(shown, 0.0, -1e9)
    values = {"": shown, "True hides a position here": ~shown, "the mask is added to scores": added}
    for words, mask in values.items():
        yield words, mask
    for words, mask in values.items():
        shape = f"the mask has an axis of queries{', ' if words else ''}{words}"
        yield shape, mask[..., None, :]
        yield shape.replace("queries", "heads and queries", 1), mask[..., None, None, :]
