"""Softmax cross-entropy, a piece of rows at a time, with sums as products.

The pair keeps log p, and takes its exponential again; here p itself is kept, so one exponential
is enough, and the backward pass is one product. Without this a training step of an
`EncoderDecoder` with 1,000 tokens and d 64 takes 15 % longer: the loss alone 2 to 4 times as long.
"""

from typing import Any

import numpy as np

from npformer.core import Array, checks
from npformer.engine.context import EngineContext
from npformer.engine.cpu.rows import EXP, UNIT, ones, pieces
from npformer.functional.losses import check_labels


def softmax_cross_entropy(
    logits: Array, labels: Array, label_smoothing: float = 0.0, *, context: EngineContext
) -> tuple[Array, Any]:
    """`functional.softmax_cross_entropy`, without weights.

    With z = logits - max, and s for the smoothing, the loss of a label is
    log sum_k exp(z_k) - (1 - s) z_label - s mean(z).
    """
    check_labels(logits, labels)
    checks.rate("label_smoothing", label_smoothing)
    smoothing, n = float(label_smoothing), logits.shape[-1]
    rows, right = logits.reshape(-1, n), np.maximum(labels, 0).reshape(-1)
    counted = labels.reshape(-1) >= 0
    p, each = context.empty(rows.shape, logits), np.empty(len(rows), logits.dtype)
    ones_of = ones(n, logits.dtype)

    def compute(some: slice) -> None:
        for piece in pieces(some, n):
            row, e = rows[piece], p[piece]
            np.subtract(row, row.max(axis=-1, keepdims=True), out=e)
            log_q = np.take_along_axis(e, right[piece][:, None], axis=-1)[:, 0]
            if smoothing > 0.0:  # 0 * -inf, for a class with logit -inf, would be NaN
                log_q = (1.0 - smoothing) * log_q + smoothing * e.mean(axis=-1)
            e *= UNIT
            EXP(e, out=e)
            totals = e @ ones_of
            e /= totals[:, None]
            np.subtract(np.log(totals), log_q, out=each[piece])

    context.in_parts(compute, len(rows))
    total = max(int(counted.sum()), 1)
    loss = np.where(counted, each, 0.0).sum() / total
    return loss, (p, right, counted, total, smoothing, logits.shape, context)


def softmax_cross_entropy_backward(dloss: Array | float, cache: Any) -> Array:
    """`functional.softmax_cross_entropy_backward`."""
    p, right, counted, total, smoothing, shape, context = cache
    dlogits = context.empty(p.shape, p)
    share = float(dloss) / total
    everywhere = share * (smoothing / p.shape[-1])

    def compute(some: slice) -> None:
        for piece in pieces(some, p.shape[-1]):
            out, left_out = dlogits[piece], ~counted[piece]
            np.multiply(p[piece], share, out=out)
            if smoothing > 0.0:
                out -= everywhere
            out[np.arange(len(out)), right[piece]] -= share * (1.0 - smoothing)
            if left_out.any():
                out[left_out] = 0.0

    context.in_parts(compute, len(p))
    return dlogits.reshape(shape)
