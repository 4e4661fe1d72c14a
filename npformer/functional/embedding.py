"""Embedding: a row of a table for each token id."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, add_at, array_module, backend_of, checks


def check_ids(name: str, ids: Array, size: int, what: str) -> None:
    """Check token ids, or labels, on the host: whole numbers from 0 to size - 1.

    Ids on a GPU are taken as they are, for looking at them would wait for the device; models check
    them before they upload them.
    """
    if ids.dtype.kind not in "iu":
        number_them = f"numpy.unique({name}, return_inverse=True)[1] numbers them"
        convert = f"Convert them with {name}.astype('int64')"
        raise TypeError(
            f"{name} has dtype {ids.dtype}; expected whole numbers. "
            f"{number_them if ids.dtype.kind in 'USO' else convert}"
        )
    if backend_of(ids=ids).name != "numpy" or ids.size == 0:
        return
    if int(ids.max()) >= size or int(ids.min()) < 0:
        low, high = int(ids.min()), int(ids.max())
        wrong = low if low < 0 else high
        from_one = f". If they start at 1, use {name} - 1" if low == 1 and high == size else ""
        raise ValueError(
            f"{name} holds {wrong}; expected whole numbers from 0 to {size - 1}, because "
            f"{what}{from_one}"
        )


def embedding(ids: Array, table: Array) -> tuple[Array, Any]:
    """y = table[ids].

    Parameters
    ----------
    ids : int array, any shape
        Token ids, from 0 to vocab_size - 1.
    table : array, shape (vocab_size, d_model)

    Returns
    -------
    y : array, shape (*ids.shape, d_model)
    cache : opaque
        For `embedding_backward`.

    Raises
    ------
    TypeError
        ids are not whole numbers.
    ValueError
        An id is out of range (checked on the host: a GPU would wrap it silently).
    """
    check_embedding(ids, table)
    return table[ids], (ids, table.shape)


def embedding_backward(dy: Array, cache: Any) -> Array:
    """Gradient of `embedding` with respect to the table.

    Parameters
    ----------
    dy : array, shape (*ids.shape, d_model)
        Gradient of the loss with respect to y.
    cache : opaque
        From `embedding`.

    Returns
    -------
    dtable : array, shape (vocab_size, d_model)
        A row that was looked up n times gets the sum of n gradients; ids have none.
    """
    ids, table_shape = cache
    # y = table[ids]
    dtable = array_module(dy).zeros(table_shape, dtype=dy.dtype)
    add_at(dtable, ids.reshape(-1), dy.reshape(-1, table_shape[1]))
    return dtable


def check_embedding(ids: Array, table: Array) -> None:
    """Check a table and what is looked up in it."""
    backend_of(ids=ids, table=table)
    checks.floating(table=table)
    checks.shape("table", table, ("vocab_size", "d_model"))
    check_ids("ids", ids, table.shape[0], f"the table has {table.shape[0]} rows")
