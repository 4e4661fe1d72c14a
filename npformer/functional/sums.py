"""Sums and products that keep their digits, whatever the strides of an array.

One number after the other, 2^25 ones in float32 sum to 2^24, because 2^24 + 1 is rounded to 2^24.
NumPy sums neighbours in memory pairwise, with an error that grows with log n, but it sums across
rows one by one, with an error that grows with n. And a BLAS multiplies in blocks, but a product
with a reversed or repeated array does not always reach it.
"""

from npformer.core import Array, array_module

BLOCK = 1024
"""How many rows are summed one by one."""


def lay_out(x: Array) -> Array:
    """Return x, or a copy of it if it lies in memory in a way that no BLAS takes.

    Views that are cut out, or transposed in their last two axes, stay as they are.
    """
    if x.flags.c_contiguous:
        return x  # cheap, and true for most calls
    if x.ndim > 1:
        rows, columns = x.shape[-2:]
        to_next_row, to_next_column = x.strides[-2:]
        if to_next_column == x.itemsize and to_next_row >= columns * x.itemsize:
            return x
        if to_next_row == x.itemsize and to_next_column >= rows * x.itemsize:
            return x
    return array_module(x).ascontiguousarray(x)


def sum_along(x: Array, axis: int, keepdims: bool = False) -> Array:
    """Sum x along an axis: pairwise along rows, and in blocks across them."""
    n, axis = x.shape[axis], axis % x.ndim
    are_neighbours = n < 2 or _is_innermost(x, axis)
    if not are_neighbours and axis == x.ndim - 1:
        x, are_neighbours = array_module(x).ascontiguousarray(x), True
    if are_neighbours or n <= BLOCK:
        return x.sum(axis=axis, keepdims=keepdims)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    in_blocks = n - n % BLOCK
    all_before = (slice(None),) * axis
    blocks = x[*all_before, :in_blocks].reshape(*before, -1, BLOCK, *after).sum(axis=axis + 1)
    rest = x[*all_before, in_blocks:].sum(axis=axis, keepdims=True)  # zeros, if none is left
    sums = array_module(x).concatenate([blocks, rest], axis=axis)
    return sum_along(sums, axis, keepdims)


def _is_innermost(x: Array, axis: int) -> bool:
    """Return whether x lies in memory along this axis, and not along another one as well."""
    size = x.itemsize
    return abs(x.strides[axis]) == size and x.strides.count(size) < 2 and 0 not in x.strides


def mean_along(x: Array, axis: int, keepdims: bool = False) -> Array:
    """Return the mean along an axis, from `sum_along`."""
    return sum_along(x, axis, keepdims) / x.shape[axis]
