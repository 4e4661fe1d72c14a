"""Heads as matrices in the order in which products read them, and the softmax of scores."""

from npformer.core import Array, array_module, checks
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import Grid, Source, contiguous, per_row

HEADS = Source("heads")
SOFTMAX = Source("softmax")

TILE = 32
"""A block moves a square of this many tokens and features; TILE in heads.cu is the same number."""

THREADS = 256
"""Threads of a block that moves a tile."""

Sizes = tuple[int, int, int, int]
"""batch, heads, length, d_head."""


def rows_to_heads(
    rows: Array,
    sizes: Sizes,
    *,
    plain: tuple[int, ...] = (),
    transposed: tuple[int, ...] = (),
    biases: tuple[Array, ...] = (),
    scale: float = 1.0,
    relu: bool = False,
    mask: Array | None = None,
) -> tuple[list[Array], list[Array]]:
    """Replaces `functional.split_heads`, in the orders that products read.

    Split rows (batch * length, parts * heads * d_head) into heads, in the requested orders. Return
    three plain and three transposed parts; None for each part that was not requested.

    Parameters
    ----------
    sizes : tuple of int
        batch, heads, length, d_head.
    plain, transposed : tuple of int
        Parts to return as (heads * batch, length, d_head), and parts to return as (heads * batch,
        d_head, length).
    biases : tuple of array, shape (heads * d_head,)
        One for each part, or none.
    scale, relu
        The first part is multiplied by `scale`, and if `relu` its negative entries become 0.
    mask : bool array, shape (batch, length), optional
        True = keep. All parts but the first become 0 where it is False.
    """
    xp = array_module(rows)
    batch, n_heads, length, d_head = sizes
    parts = rows.shape[1] // (n_heads * d_head)

    def empty(indices: tuple[int, ...], *shape: int) -> list[Array]:
        heads = n_heads * batch, *shape
        return [xp.empty(heads, dtype=rows.dtype) if i in indices else None for i in range(3)]

    plain_parts = empty(plain, length, d_head)
    transposed_parts = empty(transposed, d_head, length)
    three_biases = [*biases, None, None, None][:3]
    HEADS.launch(
        "rows_to_heads",
        _per_tile(parts, sizes),
        rows,
        *three_biases,
        scale,
        int(relu),
        mask,
        *plain_parts,
        *transposed_parts,
        parts,
        *sizes,
    )
    return plain_parts, transposed_parts


def heads_to_rows(
    parts: tuple[Array, ...],
    sizes: Sizes,
    *,
    transposed: tuple[int, ...] = (),
    scale: float = 1.0,
) -> Array:
    """Replaces `functional.merge_heads`: put heads side by side again, as before `rows_to_heads`.

    `transposed` lists the parts that are transposed. The first part is multiplied by `scale`.
    """
    batch, n_heads, length, d_head = sizes
    first, n = parts[0], len(parts)
    shape = (batch * length, n * n_heads * d_head)
    rows = array_module(first).empty(shape, dtype=first.dtype)
    bits = sum(1 << k for k in transposed)
    three_parts = [*parts, None, None][:3]
    HEADS.launch("heads_to_rows", _per_tile(n, sizes), *three_parts, bits, scale, rows, n, *sizes)
    return rows


def padding_of(context: EngineContext, batch: int, length: int) -> Array | None:
    """Check the padding mask, and return it as kernels read it: C-contiguous (batch, length)."""
    if context.mask is None:
        return None
    checks.mask("mask", context.mask, (batch, length))
    return contiguous(context.mask)


def softmax_of_scores(
    scores: Array,
    batch: int,
    queries: int,
    *,
    mask: Array | None,
    causal: bool,
    bias: Array | None = None,
    first: int = 0,
) -> None:
    """Replaces `functional.softmax`, in place, with mask, bias and causal order.

    Parameters
    ----------
    scores : array, shape (..., keys)
        Rows in the order (heads, batch, queries), or some of these rows, from row `first` on.
    batch, queries : int
        Sizes of all scores together.
    mask : bool array, shape (batch, keys), or None
        True = keep.
    bias : array, shape (heads, at least keys), optional
        Added to the scores of each key.
    """
    keys = scores.shape[-1]
    width = 0 if bias is None else bias.shape[-1]
    grid = per_row(scores.size // keys, keys)
    SOFTMAX.launch(
        "masked_softmax",
        grid,
        scores,
        bias,
        width,
        mask,
        batch,
        queries,
        keys,
        first,
        int(causal),
    )


def softmax_backward_in_place(weights: Array, dweights: Array) -> None:
    """Replaces `functional.softmax_backward`, in place.

    Replace the gradient of the weights by the gradient of the scores.
    """
    keys = weights.shape[-1]
    grid = per_row(weights.size // keys, keys)
    SOFTMAX.launch("softmax_backward", grid, weights, dweights, keys)


def _per_tile(parts: int, sizes: Sizes) -> Grid:
    batch, n_heads, length, d_head = sizes
    return parts * n_heads * batch * -(-length // TILE) * -(-d_head // TILE), THREADS
