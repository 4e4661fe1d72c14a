"""Gradients of broadcasting: what was repeated is summed."""

from __future__ import annotations

from npformer.backend import Array


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Return `gradient` summed over the axes along which an array of `shape` was repeated.

    Parameters
    ----------
    gradient : array
        With respect to the broadcast array.
    shape : tuple of int
        Of the array before it was broadcast.
    """
    extra = gradient.ndim - len(shape)
    if extra:
        gradient = gradient.sum(axis=tuple(range(extra)))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=repeated, keepdims=True) if repeated else gradient
