"""Bag: a weighted sum of rows of a table, for a set of ids without an order."""

from typing import Any

from npformer.core import Array, add_at, checks
from npformer.functional.embedding import check_ids


def bag(ids: Array, weights: Array, table: Array) -> tuple[Array, Any]:
    """y = sum_k weights_k table[ids_k].

    This is a linear map of a vector with an entry for each row of the table, of which nearly all
    are 0: only the others are given (Joulin et al., 2017, "Bag of tricks for efficient text
    classification").

    Parameters
    ----------
    ids : int array, shape (batch, n)
        From 0 to n_rows - 1. Other ids are refused on the host, but not on a GPU.
    weights : array, shape (batch, n)
        An id with weight 0 counts for nothing, and so fills up rows with fewer ids.
    table : array, shape (n_rows, n_outputs)

    Returns
    -------
    y : array, shape (batch, n_outputs)
    """
    checks.floating(weights=weights, table=table)
    checks.shape("table", table, ("n_rows", "n_outputs"))
    check_ids("ids", ids, table.shape[0], f"the table has {table.shape[0]} rows", table=table)
    checks.shape("ids", ids, ("batch", "n"))
    checks.shape("weights", weights, tuple(ids.shape), "One for each id")
    rows = table[ids]  # [batch, n, n_outputs]
    y = (weights[:, None, :] @ rows)[:, 0]  # [batch, 1, n], [batch, n, n_outputs]
    return y, (ids, weights, rows, table.shape)


def bag_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """dweights_k = table[ids_k] dy, and dtable[ids_k] += weights_k dy. Ids have no gradient.

    For one sample y = A table, where row A has weights_k at the place ids_k. So dtable = A^T dy: a
    row that several samples use gets a sum, and rows that none of them uses get 0.
    """
    ids, weights, rows, table_shape = cache
    xp = checks.gradient(dy, (ids.shape[0], table_shape[1]))
    # y = sum_k weights_k rows_k
    dweights = (rows @ dy[:, :, None])[..., 0]  # [batch, n]
    drows = weights[..., None] * dy[:, None, :]  # [batch, n, n_outputs]
    # rows = table[ids]
    dtable = xp.zeros(table_shape, dtype=dy.dtype)
    # an id that comes twice: a sum
    add_at(dtable, ids.reshape(-1), drows.reshape(-1, table_shape[1]))
    return dweights, dtable
