"""An embedding looked up in one copy, and its gradient as a product with a sparse matrix.

Without this a training step takes 4 % longer on S, 1 % on M, 3 % on X (`python -m benchmarks
parts`). Batches of a few hundred tokens change a small part of a table of thousands of rows: there
`add_to_rows` takes about half the time of the whole table's gradient with 5000 rows, and a tenth
with 30000.
"""

from typing import Any

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.cpu.rows import leaf
from npformer.functional.embedding import check_embedding

FEW = 1 << 14
"""Up to this many entries of dy are added one by one: building a sparse matrix takes longer."""

ROWS = 4
"""If a table has at least this many rows for each token of a batch, or if there are few numbers,
gradients are added only to the rows that occur. Otherwise the whole table's are computed."""


def embedding(ids: Array, table: Array, *, context: EngineContext) -> tuple[Array, Any]:
    """Replaces `functional.embedding`."""
    are_integers = type(ids) is np.ndarray and ids.dtype.kind in "iu" and table.ndim == 2
    if not are_integers or (ids.size and (ids.min() < 0 or ids.max() >= len(table))):
        check_embedding(ids, table)  # which names what is wrong, and is slower
    y = context.empty((*ids.shape, table.shape[1]), table)
    rows = ids.astype(np.intp, copy=False)  # NumPy 2.0's take refuses uint64
    np.take(table, rows, axis=0, mode="clip", out=y)  # "raise" would copy the result
    return y, (ids, table.shape)


def embedding_backward(dy: Array, cache: Any) -> Array:
    """Replaces `functional.embedding_backward`.

    A lookup is a product with a matrix that has a single 1 in each row, at the token's id. The
    gradient is the transpose of that matrix times dy, which SciPy computes many times as fast as
    `add.at`.
    """
    ids, (vocab_size, d_model) = cache
    n = ids.size
    from scipy.sparse import csc_array  # a slow import, which models without tokens do not need

    one_hot = csc_array(  # one column for each token
        (np.ones(n, dy.dtype), ids.reshape(-1), np.arange(n + 1)), shape=(vocab_size, n)
    )
    return one_hot @ dy.reshape(n, d_model)


def add_by_rows(dy: Array, ids: Array, table: Array) -> bool:
    """Return whether gradients are added only to the rows that occur."""
    return add_to_rows.runs_loop or dy.size <= FEW or ROWS * ids.size <= len(table)


def _loop(total, ids, dy):  # type: ignore[no-untyped-def]
    for i in range(len(ids)):
        row, gradient = total[ids[i]], dy[i]
        for j in range(dy.shape[1]):
            row[j] += gradient[j]


@leaf(_loop)
def add_to_rows(total: Array, ids: Array, dy: Array) -> None:
    """Replaces `functional.embedding_backward`, added to `total`, the gradient of a table.

    It changes only the rows that were looked up. ids are (n,), and dy is (n, d_model). It adds
    the same numbers as `embedding_backward`, bit for bit: tokens with the same id are summed in
    their order.
    """
    if dy.size <= FEW:
        np.add.at(total, ids, dy)
        return
    order = ids.argsort(kind="stable")
    by_id = ids[order]
    first = np.ones(len(by_id), dtype=bool)
    np.not_equal(by_id[1:], by_id[:-1], out=first[1:])
    starts = first.nonzero()[0]
    n, rows = len(by_id), by_id[starts]
    from scipy.sparse import csr_array

    one_hot = csr_array(  # one row for each id that occurs
        (np.ones(n, dy.dtype), order, np.append(starts, n)), shape=(len(rows), n)
    )
    sums = one_hot @ dy
    sums += total[rows]
    total[rows] = sums
