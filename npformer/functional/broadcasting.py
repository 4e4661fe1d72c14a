"""Broadcasting: which shapes fit, and its gradient: what was repeated is summed."""

from __future__ import annotations

from npformer.core import Array


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Return `gradient` summed over the axes along which an array of `shape` was repeated.

    Parameters
    ----------
    gradient : array
        With respect to the broadcast array.
    shape : tuple of int
        Of the array before it was broadcast.
    """
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    if extra:
        gradient = gradient.sum(axis=tuple(range(extra)))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=repeated, keepdims=True) if repeated else gradient


def broadcast_shape(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that arrays of two shapes have together; None if they do not fit.

    Parameters
    ----------
    one, other : tuple of int
    """
    if one == other:
        return one
    n = max(len(one), len(other))
    pairs = zip((1,) * (n - len(one)) + one, (1,) * (n - len(other)) + other, strict=True)
    sizes = [(a, b) if b == 1 else (b, a) for a, b in pairs]
    return tuple(a for a, _ in sizes) if all(b in (1, a) for a, b in sizes) else None
