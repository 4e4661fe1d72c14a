"""Softmax cross-entropy, a chunk of rows at a time, with sums as products.

The pair stores log p, and takes its exponential again; the kernel stores p itself, so one
exponential is enough, and the backward pass is one product. Without this a training step of an
`EncoderDecoder` with 1,000 tokens and d 64 takes 15 % longer: the loss alone 2 to 4 times as long.
"""

from typing import Any

import numpy as np

from npformer.core import Array, checks
from npformer.engine.context import EngineContext
from npformer.engine.cpu.loops import exp
from npformer.engine.cpu.rows import EXP, UNIT, chunks, leaf, ones
from npformer.functional.losses import check_labels
from npformer.functional.sums import lay_out

SURE = 1.5
"""Below this sum of a row's exponentials, of which the largest is 1, log1p of the sum of the others
is more exact than the logarithm of the sum."""


def softmax_cross_entropy(
    logits: Array, labels: Array, label_smoothing: float = 0.0, *, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.softmax_cross_entropy`, without weights.

    With z = logits - max and the smoothing s, the loss of a label is
    log sum_k exp(z_k) - (1 - s) z_label - s mean(z).
    """
    check_labels(logits, labels)
    checks.rate("label_smoothing", label_smoothing)
    smoothing, n = float(label_smoothing), logits.shape[-1]
    rows, targets = lay_out(logits.reshape(-1, n)), np.maximum(labels, 0).reshape(-1)
    has_label = labels.reshape(-1) >= 0
    p, losses = context.empty(rows.shape, logits), np.empty(len(rows), logits.dtype)

    def compute(part: slice) -> None:
        for chunk in chunks(part, n):
            top = rows[chunk].max(axis=-1, keepdims=True)
            softmax_cross_entropy_of_rows(
                rows[chunk], top, targets[chunk], smoothing, p[chunk], losses[chunk]
            )

    context.map_slices(compute, len(rows))
    total = max(int(has_label.sum()), 1)
    loss = np.where(has_label, losses, 0.0).sum() / total
    return loss, (p, targets, has_label, losses, total, smoothing, logits.shape, context)


def _loop(rows, top, targets, smoothing, p, losses):  # type: ignore[no-untyped-def]
    n, of = rows.shape[1], rows.dtype.type
    for i in range(len(rows)):
        total = sum_of_z = of(0.0)
        for j in range(n):
            z = rows[i, j] - top[i, 0]
            sum_of_z += z
            p[i, j] = exp(z)
            total += p[i, j]
        log_total = np.log(total)
        if total < of(SURE):  # and then no other logit is as large as the largest
            rest = of(0.0)
            for j in range(n):
                rest += p[i, j] if rows[i, j] != top[i, 0] else of(0.0)
            log_total = np.log1p(rest)
        for j in range(n):
            p[i, j] /= total
        log_q = rows[i, targets[i]] - top[i, 0]
        if smoothing > 0.0:  # 0 * -inf, for a class with logit -inf, would be NaN
            log_q = of(1.0 - smoothing) * log_q + of(smoothing / n) * sum_of_z
        losses[i] = log_total - log_q


@leaf(_loop)
def softmax_cross_entropy_of_rows(
    rows: Array, top: Array, targets: Array, smoothing: float, p: Array, losses: Array
) -> None:
    """Replaces `functional.softmax_cross_entropy` of rows, before their losses are averaged.

    Write the probabilities of each row into p, and its loss into `losses`.
    """
    np.subtract(rows, top, out=p)
    log_q = np.take_along_axis(p, targets[:, None], axis=-1)[:, 0]
    if smoothing > 0.0:
        log_q = (1.0 - smoothing) * log_q + smoothing * p.mean(axis=-1)
    p *= UNIT
    EXP(p, out=p)
    totals = p @ ones(p.shape[1], p.dtype)
    log_totals = np.log(totals)
    sure_rows = np.flatnonzero(totals < SURE)  # and then no other logit is as large as the largest
    rest = np.where(rows[sure_rows] == top[sure_rows], 0.0, p[sure_rows])
    log_totals[sure_rows] = np.log1p(rest.sum(axis=-1))
    p /= totals[:, None]
    np.subtract(log_totals, log_q, out=losses)


def softmax_cross_entropy_backward(dloss: Array | float, cache: Any) -> Array:
    """Replaces `functional.softmax_cross_entropy_backward`."""
    p, targets, has_label, losses, total, smoothing, shape, context = cache
    dlogits = context.empty(p.shape, p)
    factor = float(dloss) / total

    def compute(part: slice) -> None:
        for chunk in chunks(part, p.shape[-1]):
            softmax_cross_entropy_backward_of_rows(
                p[chunk],
                targets[chunk],
                has_label[chunk],
                losses[chunk],
                factor,
                smoothing,
                dlogits[chunk],
            )

    context.map_slices(compute, len(p))
    return dlogits.reshape(shape)


def _backward_loop(p, targets, has_label, losses, factor, smoothing, dlogits):  # type: ignore[no-untyped-def]
    n, of = p.shape[1], p.dtype.type
    size, everywhere = of(factor), of(factor * (smoothing / n))
    for i in range(len(p)):
        if has_label[i]:
            for j in range(n):
                dlogits[i, j] = p[i, j] * size - everywhere
            if smoothing > 0.0:
                dlogits[i, targets[i]] -= of(factor * (1.0 - smoothing))
            else:
                dlogits[i, targets[i]] = of(factor) * np.expm1(-losses[i])
        else:
            dlogits[i] = of(0.0)


@leaf(_backward_loop)
def softmax_cross_entropy_backward_of_rows(
    p: Array,
    targets: Array,
    has_label: Array,
    losses: Array,
    factor: float,
    smoothing: float,
    dlogits: Array,
) -> None:
    """Replaces `functional.softmax_cross_entropy_backward` of rows.

    Write factor (p - q) of the rows that have a label into `dlogits`, and 0 of the others. Without
    smoothing a loss is -log p, so that p - 1 is expm1(-loss), with all its digits.
    """
    np.multiply(p, factor, out=dlogits)
    if smoothing > 0.0:
        dlogits -= factor * (smoothing / p.shape[1])
        dlogits[np.arange(len(dlogits)), targets] -= factor * (1.0 - smoothing)
    else:
        dlogits[np.arange(len(dlogits)), targets] = factor * np.expm1(-losses)
    if not has_label.all():
        dlogits[~has_label] = 0.0
