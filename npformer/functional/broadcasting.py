"""Broadcasting, and its gradient: a sum over the axes that were repeated."""

from npformer.core import Array, array_module
from npformer.functional.sums import sum_along


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum `gradient` over the axes along which an array of `shape` was broadcast."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    for _ in range(extra):
        gradient = sum_along(gradient, axis=0)
    for i, n in enumerate(shape):
        if n == 1 and gradient.shape[i] != 1:
            gradient = sum_along(gradient, axis=i, keepdims=True)
    return gradient


def broadcast_shape(
    one: tuple[int, ...], other: tuple[int, ...], reference: Array
) -> tuple[int, ...] | None:
    """Return the shape that two shapes broadcast to, or None, by `reference`'s library."""
    try:
        return tuple(array_module(reference).broadcast_shapes(one, other))
    except ValueError:
        return None
