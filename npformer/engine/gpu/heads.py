"""Heads as matrices in the order in which products read them, and weights from scores."""

from __future__ import annotations

from npformer.core import Array, array_module, checks
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import Source, contiguous, row_threads

HEADS = Source("heads")
SOFTMAX = Source("softmax")

TILE = 32
"""Tokens, and features, of the square that a block moves: as in heads.cu."""

THREADS = 256
"""Of a block that moves a square."""


def rows_to_heads(
    rows: Array,
    sizes: tuple[int, int, int, int],
    *,
    plain: tuple[int, ...] = (),
    turned: tuple[int, ...] = (),
    biases: tuple[Array, ...] = (),
    scale: float = 1.0,
    relu: bool = False,
    mask: Array | None = None,
) -> list[Array]:
    """Part the columns of rows into heads, each part in the orders that are asked for.

    Parameters
    ----------
    rows : array, shape (batch * length, parts * heads * d_head)
    sizes : tuple of int
        batch, heads, length, d_head.
    plain : tuple of int
        Parts to return as (heads * batch, length, d_head).
    turned : tuple of int
        Parts to return as (heads * batch, d_head, length).
    biases : tuple of array, shape (heads * d_head,)
        Added, one for each part, or none.
    scale : float
        The first part is multiplied with it.
    relu : bool
        Whether negative entries of the first part become 0.
    mask : bool array, shape (batch, length), optional
        True = keep. All parts but the first are 0 elsewhere.

    Returns
    -------
    parts : list of array
        The plain ones, then the turned ones.
    """
    xp = array_module(rows)
    batch, n_heads, length, d_head = sizes
    parts = rows.shape[1] // (n_heads * d_head)
    plains: list[Array] = [None] * 3
    turns: list[Array] = [None] * 3
    for part in plain:
        plains[part] = xp.empty((n_heads * batch, length, d_head), dtype=rows.dtype)
    for part in turned:
        turns[part] = xp.empty((n_heads * batch, d_head, length), dtype=rows.dtype)
    added = (*biases, None, None, None)[:3]
    where = (*plains, *turns, parts, *sizes)
    HEADS.launch(
        "rows_to_heads",
        rows,
        _blocks(parts, sizes),
        THREADS,
        *(rows, *added, scale, int(relu), mask, *where),
    )
    return [plains[part] for part in plain] + [turns[part] for part in turned]


def heads_to_rows(
    parts: tuple[Array, ...],
    sizes: tuple[int, int, int, int],
    *,
    turned: tuple[int, ...] = (),
    scale: float = 1.0,
) -> Array:
    """Put heads side by side again: `rows_to_heads` undone.

    Parameters
    ----------
    parts : tuple of array
        Each (heads * batch, length, d_head), or (heads * batch, d_head, length) if it is turned.
    sizes : tuple of int
        batch, heads, length, d_head.
    turned : tuple of int
        Which parts come turned.
    scale : float
        The first part is multiplied with it.

    Returns
    -------
    rows : array, shape (batch * length, parts * heads * d_head)
    """
    batch, n_heads, length, d_head = sizes
    near, n = parts[0], len(parts)
    shape = (batch * length, n * n_heads * d_head)
    rows = array_module(near).empty(shape, dtype=near.dtype)
    bits = sum(1 << part for part in turned)
    given = (*parts, None, None)[:3]
    HEADS.launch(
        "heads_to_rows",
        near,
        _blocks(n, sizes),
        THREADS,
        *(*given, bits, scale, rows, n, *sizes),
    )
    return rows


def padding_of(context: EngineContext, batch: int, length: int) -> Array | None:
    """Return the padding mask in the form that kernels read, after a look at it.

    Parameters
    ----------
    context : EngineContext
    batch, length : int
        What the mask must have.

    Returns
    -------
    mask : bool array, shape (batch, length), or None
    """
    if context.mask is None:
        return None
    checks.mask("mask", context.mask, (batch, length))
    return contiguous(context.mask)


def masked_softmax(
    scores: Array,
    batch: int,
    queries: int,
    *,
    mask: Array | None,
    causal: bool,
    bias: Array | None = None,
    first: int = 0,
) -> None:
    """Turn scores into weights, in place.

    Parameters
    ----------
    scores : array, shape (..., keys)
        Rows in the order (heads, batch, queries), or some of them.
    batch, queries : int
        Of all rows.
    mask : bool array, shape (batch, keys), or None
        True = keep.
    causal : bool
        Query i sees the keys 0 to i only.
    bias : array, shape (heads, at least keys), optional
        Added to the scores of each key.
    first : int
        Number of the first row among all.
    """
    keys = scores.shape[-1]
    n = scores.size // keys
    width = 0 if bias is None else bias.shape[-1]
    SOFTMAX.launch(
        "masked_softmax",
        scores,
        n,
        row_threads(keys),
        *(scores, bias, width, mask, batch, queries, keys, first, int(causal)),
    )


def softmax_backward(weights: Array, dweights: Array) -> None:
    """Turn the gradient of weights into that of scores, in place.

    Parameters
    ----------
    weights, dweights : array, shape (..., keys)
    """
    keys = weights.shape[-1]
    n = weights.size // keys
    SOFTMAX.launch("softmax_backward", weights, n, row_threads(keys), weights, dweights, keys)


def _blocks(parts: int, sizes: tuple[int, int, int, int]) -> int:
    batch, n_heads, length, d_head = sizes
    return parts * n_heads * batch * -(-length // TILE) * -(-d_head // TILE)
