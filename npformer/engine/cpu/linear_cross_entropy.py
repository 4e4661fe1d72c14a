"""Softmax cross-entropy of logits that are a linear map, a block of rows at a time.

The logits of a language model are its largest arrays: with 50,257 tokens in the vocabulary and 8
sequences of 256 tokens they take 412 MB in float32, and so do their probabilities and their
gradients. Here a block of rows goes through the map, the loss and both backward passes before the
next block does, and its gradients take the place of its logits.
"""

from typing import NamedTuple, Self

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext
from npformer.engine.cpu.linear import accumulate_product
from npformer.engine.cpu.losses import (
    softmax_cross_entropy_backward_of_rows,
    softmax_cross_entropy_of_rows,
)
from npformer.engine.cpu.rows import chunks, column_sums, map_fits, scratch
from npformer.engine.threads import slices
from npformer.functional.linear import check_linear
from npformer.functional.losses import check_labels
from npformer.functional.sums import lay_out

ROWS = 768
"""The most rows of a block, for each thread that shares a call. Every block reads W twice, and
reads and writes dW, so that many small blocks would take longer."""

PRODUCT = 1 << 20
"""Entries of dW that are added at a time."""


class LabelledRows(NamedTuple):
    """Inputs of the map, their labels, and where their losses and gradients are written."""

    x: Array
    classes: Array
    has_label: Array
    losses: Array
    dx: Array

    def select(self, rows: slice) -> Self:
        """Return some of the rows."""
        return type(self)(*(array[rows] for array in self))


def linear_cross_entropy(
    x: Array,
    W: Array,
    b: Array | None,
    labels: Array,
    label_smoothing: float,
    dloss: float,
    dW: Array | None,
    db: Array | None,
    *,
    context: EngineContext,
) -> tuple[Array, Array]:
    """Replaces `functional.linear` and `functional.softmax_cross_entropy`, with both gradients.

    Return the mean loss of the logits x W + b, and dx, the gradient of ``dloss * loss``. The
    gradients of W and b are added to dW and db, or left out for None. x is (..., d_in), W is
    (d_in, n_classes), and dW is an array like W or the transpose of one.
    """
    if not map_fits(x, W, b):
        check_linear(x, W, b)
    d_in, n_classes = W.shape
    logits_without_memory = np.broadcast_to(x.dtype.type(0.0), (*x.shape[:-1], n_classes))
    check_labels(logits_without_memory, labels)
    has_label = labels.reshape(-1) >= 0
    n_rows = len(has_label)
    rows = LabelledRows(
        x=lay_out(x.reshape(n_rows, d_in)),
        classes=np.maximum(labels, 0).reshape(-1),
        has_label=has_label,
        losses=np.empty(n_rows, x.dtype),
        dx=context.empty((n_rows, d_in), x),
    )
    total = max(int(has_label.sum()), 1)
    factor = float(dloss) / total
    blocks = slices(n_rows, -(-n_rows // (ROWS * context.threads)))
    most_rows = max(block.stop - block.start for block in blocks)
    memory = context.empty((most_rows, n_classes), x)
    for block in blocks:
        block_rows = rows.select(block)
        dlogits = memory[: block.stop - block.start]
        write_gradients(block_rows, W, b, label_smoothing, factor, dlogits, context)
        add_gradients_of_map(dlogits, block_rows.x, dW, db, context)
    loss = np.where(has_label, rows.losses, 0.0).sum() / total
    return loss, rows.dx.reshape(x.shape)


def write_gradients(
    rows: LabelledRows,
    W: Array,
    b: Array | None,
    smoothing: float,
    factor: float,
    dlogits: Array,
    context: EngineContext,
) -> None:
    """Write the losses of rows, dx and `dlogits`, the gradients of ``factor * losses.sum()``.

    The logits lie in the memory of `dlogits` until those replace them.
    """

    def compute(part: slice) -> None:
        np.matmul(rows.x[part], W, out=dlogits[part])
        for chunk in chunks(part, W.shape[1]):
            logits, (_, classes, has_label, losses, _) = dlogits[chunk], rows.select(chunk)
            if b is not None:
                logits += b
            top = logits.max(axis=-1, keepdims=True)
            p = scratch(logits.size, logits.dtype).reshape(logits.shape)
            softmax_cross_entropy_of_rows(logits, top, classes, smoothing, p, losses)
            softmax_cross_entropy_backward_of_rows(
                p, classes, has_label, losses, factor, smoothing, logits
            )
        np.matmul(dlogits[part], W.T, out=rows.dx[part])

    context.map_slices(compute, len(dlogits))


def add_gradients_of_map(
    dy: Array, x: Array, dW: Array | None, db: Array | None, context: EngineContext
) -> None:
    """Replaces `functional.linear_backward`, for dW and db, to which gradients are added.

    dy and x are (rows, features). Some columns of dy are taken at a time: an array as large as dW
    would have to be written and read.
    """
    columns_at_once = max(1, PRODUCT // x.shape[1])

    def compute(part: slice) -> None:
        for first in range(part.start, part.stop, columns_at_once):
            columns = slice(first, min(first + columns_at_once, part.stop))
            if db is not None:
                db[columns] += column_sums(dy[:, columns])
            if dW is not None:
                add_product(x, dy[:, columns], dW[:, columns], context)

    context.map_slices(compute, dy.shape[1])


def add_product(x: Array, dy: Array, dW: Array, context: EngineContext) -> None:
    """Add x^T dy to dW, or dy^T x to its transpose if that has its rows one after another."""
    if dW.strides[0] < dW.strides[1]:
        x, dy, dW = dy, x, dW.T
    accumulate_product(x.T, dy, dW, is_first=False, context=context)
