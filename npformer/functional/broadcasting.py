"""Broadcasting, and its gradient: a sum over the axes that were repeated."""

from npformer.core import Array, array_module


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum `gradient` over the axes along which an array of `shape` was broadcast."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    if extra:
        gradient = gradient.sum(axis=tuple(range(extra)))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=repeated, keepdims=True) if repeated else gradient


def broadcast_shape(
    one: tuple[int, ...], other: tuple[int, ...], reference: Array
) -> tuple[int, ...] | None:
    """Return the shape that two shapes broadcast to, or None, by `reference`'s library."""
    try:
        return tuple(array_module(reference).broadcast_shapes(one, other))
    except ValueError:
        return None
