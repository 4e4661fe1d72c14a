"""Sums over the rows of a matrix, in an order that depends on the shape alone."""

import math

from npformer.core import Array, array_module
from npformer.engine.gpu.source import WARP, Source

SUMS = Source("sums")

GROUPS = 256
"""At most this many groups of rows. A first pass adds up each group, a second pass adds up their
sums. Too few groups leave a GPU idle in the first pass, too many in the second."""

ROWS = 16
"""At least this many rows per group, if there are that many."""


class Columns:
    """The division of a matrix into groups of rows, of which each thread sums one column.

    `grid` and `sizes` are for `Source.launch`, in kernels for a single matrix. The last group may
    have fewer rows than the others.
    """

    def __init__(self, rows: int, width: int) -> None:
        self.rows_of_group = max(ROWS, -(-rows // GROUPS))
        self.sizes = rows, width, self.rows_of_group
        self.groups = -(-rows // self.rows_of_group)
        threads = min(8 * WARP, WARP * max(-(-width // WARP), 1))
        self.grid = self.groups * -(-width // threads), threads


def column_sums(x: Array) -> Array:
    """Replaces the sum for db in `functional.linear_backward`.

    Return the sums over the rows of each matrix: (..., rows, width) -> (..., width).

    This is not ``ones @ x``, because products lose precision in TF32.
    """
    *leading, rows, width = x.shape
    n = math.prod(leading)
    while True:
        columns = Columns(rows, width)
        groups, (blocks, threads) = columns.groups, columns.grid
        if groups == 0:
            return array_module(x).zeros((*leading, width), dtype=x.dtype)
        sums = array_module(x).empty((*leading, groups, width), dtype=x.dtype)
        grid = n * blocks, threads
        SUMS.launch("column_sums", grid, x, sums, rows, width, groups, columns.rows_of_group)
        if groups == 1:
            return sums.reshape(*leading, width)
        x, rows = sums, groups
