"""Embedding: a row of a table for each token id."""

from typing import Any

from npformer.core import Array, add_at, backend_of, checks


def embedding(ids: Array, table: Array) -> tuple[Array, Any]:
    """y = table[ids].

    Parameters
    ----------
    ids : int array, any shape
        From 0 to vocab_size - 1. Other ids are refused on the host, but not on a GPU.
    table : array, shape (vocab_size, d_model)

    Returns
    -------
    y : array, shape (*ids.shape, d_model)
    """
    check_embedding(ids, table)
    return table[ids], (ids, table.shape)  # a row for each id [..., d_model]


def embedding_backward(dy: Array, cache: Any) -> Array:
    """dtable: a row that was looked up n times gets the sum of n rows of dy. Ids have no gradient.

    y_t = sum_r H_tr table_r, where H_tr is 1 if r is the id of token t and else 0. So y = H table
    is a linear map, and dtable = H^T dy: row r is the sum of dy_t over all tokens t with the id r.
    H is never built. ``dtable[ids] += dy`` would keep only one of several dy_t for the same row.
    """
    ids, table_shape = cache
    xp = checks.gradient(dy, (*ids.shape, table_shape[1]))
    # y = table[ids]
    dtable = xp.zeros(table_shape, dtype=dy.dtype)
    add_at(dtable, ids.reshape(-1), dy.reshape(-1, table_shape[1]))  # an id that comes twice: a sum
    return dtable


def check_embedding(ids: Array, table: Array) -> None:
    """Check a table and the ids that are looked up in it."""
    checks.floating(table=table)
    if table.ndim != 2:
        checks.shape("table", table, ("vocab_size", "d_model"))
    check_ids("ids", ids, table.shape[0], f"the table has {table.shape[0]} rows", table=table)


def check_ids(name: str, ids: Array, size: int, what: str, least: int = 0, **near: Array) -> None:
    """Check that token ids, or labels, are whole numbers from `least` to size - 1.

    They must be on the backend of the arrays `near` them. On a GPU only their dtype is checked,
    because reading them would wait for the device; models check ids before the upload.
    """
    on_host = backend_of(**{name: ids}, **near).name == "numpy"
    if ids.dtype.kind not in "iu":
        number_them = f"numpy.unique({name}, return_inverse=True)[1] numbers them"
        convert = f"Convert them with {name}.astype('int64')"
        raise TypeError(
            f"{name} has dtype {ids.dtype}; expected whole numbers. "
            f"{number_them if ids.dtype.kind in 'USO' else convert}"
        )
    if on_host and ids.size and (ids.min() < least or ids.max() >= size):
        low, high = int(ids.min()), int(ids.max())
        raise _range_error(name, low, high, size=size, least=least, what=what)


def _range_error(name: str, low: int, high: int, size: int, least: int, what: str) -> ValueError:
    """Return the error for ids from `low` to `high`, with advice for two common causes."""
    advice = ""
    if low == 1 and high == size:
        advice = f". If they start at 1, use {name} - 1"
    elif low == -100 and least < 0:
        advice = ". Elsewhere -100 means that there is no label: write -1"
    return ValueError(
        f"{name} holds {low if low < least else high}; expected whole numbers from 0 to "
        f"{size - 1}, because {what}{advice}"
    )
