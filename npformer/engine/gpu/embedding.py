"""The gradient of an embedding's table, summed in a fixed order."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, array_module
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import Source, contiguous, per_row

EMBEDDING = Source("embedding")

RUN = 64
"""Sorted positions that a block adds up; RUN in embedding.cu is the same number."""


def embedding(ids: Array, table: Array, *, context: EngineContext) -> tuple[Array, Any]:
    """Replaces `functional.embedding` by itself: a lookup is already a single launch."""
    return F.embedding(ids, table)


def embedding_backward(dy: Array, cache: Any) -> Array:
    """Replaces `functional.embedding_backward`."""
    ids, (vocab_size, width) = cache
    xp = array_module(dy)
    rows = contiguous(dy)
    ids = contiguous(ids).reshape(-1).astype("int64", copy=False)
    n = ids.size
    dtable = xp.zeros((vocab_size, width), dtype=dy.dtype)
    order = xp.argsort(ids, kind="stable")  # the only kind that CuPy has
    grid = per_row(-(-n // RUN), width)
    edges = xp.empty((grid[0], 2, width), dtype=dy.dtype)
    EMBEDDING.launch(
        "embedding_backward_of_runs", grid, ids, order, rows, dtable, edges, n, width, vocab_size
    )
    EMBEDDING.launch(
        "embedding_backward_of_edges", grid, ids, order, edges, dtable, n, width, vocab_size
    )
    return dtable
