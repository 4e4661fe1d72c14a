"""Sums over the rows of a matrix, in an order that the shape alone decides."""

from __future__ import annotations

from npformer.core import Array, array_module
from npformer.engine.gpu.source import WARP, Source

SUMS = Source("sums")

GROUPS = 256
"""The largest number of groups that rows are parted into: each is added up by itself, then they
are. Few groups leave a GPU idle in the first pass, many in the second."""

ROWS = 16
"""The least number of rows of a group, if there are so many."""


class Columns:
    """How a matrix is shared out where a thread has a column of a group of rows.

    Parameters
    ----------
    rows, width : int
        Of the matrix.

    Attributes
    ----------
    groups, rows_of_group : int
        The last group may have fewer.
    threads, blocks : int
        For `Source.launch`, in kernels for a single matrix.
    """

    def __init__(self, rows: int, width: int) -> None:
        self.rows_of_group = max(ROWS, -(-rows // GROUPS))
        self.groups = -(-rows // self.rows_of_group)
        self.threads = min(8 * WARP, WARP * max(-(-width // WARP), 1))
        self.tiles = -(-width // self.threads)
        self.blocks = self.groups * self.tiles


def column_sums(x: Array) -> Array:
    """Return the sums over the rows of each matrix.

    Parameters
    ----------
    x : array, shape (..., rows, width)

    Returns
    -------
    sums : array, shape (..., width)

    Notes
    -----
    Not ``ones @ x``, which has reduced precision wherever products have, as in TF32.
    """
    *leading, rows, width = x.shape
    n = 1
    for size in leading:
        n *= size
    while True:
        shared_out = Columns(rows, width)
        groups = shared_out.groups
        if groups == 0:
            return array_module(x).zeros((*leading, width), dtype=x.dtype)
        sums = array_module(x).empty((*leading, groups, width), dtype=x.dtype)
        blocks = n * shared_out.blocks
        sizes = (rows, width, groups, shared_out.rows_of_group)
        SUMS.launch("column_sums", x, blocks, shared_out.threads, x, sums, *sizes)
        if groups == 1:
            return sums.reshape(*leading, width)
        x, rows = sums, groups
