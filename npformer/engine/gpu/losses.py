"""Softmax cross-entropy: one launch for the rows, one for their mean, and no wait."""

from typing import Any

from npformer.core import Array, array_module, backend_of, checks
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import Source, contiguous, per_row
from npformer.functional.embedding import check_ids

CROSS_ENTROPY = Source("cross_entropy")

MEAN = 1024
"""Threads of the one block that adds up the losses of all rows."""


def softmax_cross_entropy(
    logits: Array, labels: Array, label_smoothing: float = 0.0, *, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.softmax_cross_entropy`.

    Labels on a GPU are not checked, because the host would have to wait. A label out of range
    makes the loss NaN.
    """
    xp = checks.floating(logits=logits)
    backend_of(logits=logits, labels=labels)
    checks.shape("logits", logits, (None, "n_classes"))
    n_classes = logits.shape[-1]
    checks.shape("labels", labels, logits.shape[:-1], "One label for each row of logits")
    checks.rate("label_smoothing", label_smoothing)
    check_ids("labels", labels, n_classes, f"logits have {n_classes} classes (-1: no label)")
    logits = contiguous(logits)
    labels = contiguous(labels.astype("int64", copy=False))
    rows = labels.size
    smoothing = float(label_smoothing)
    losses = xp.empty(rows, dtype=logits.dtype)
    saved = xp.empty((rows, 2), dtype=logits.dtype)
    loss, inverse_count = (xp.empty((), dtype=logits.dtype) for _ in range(2))
    CROSS_ENTROPY.launch(
        "softmax_cross_entropy",
        per_row(rows, n_classes),
        logits,
        labels,
        smoothing,
        losses,
        saved,
        n_classes,
    )
    CROSS_ENTROPY.launch("mean_over_labels", (1, MEAN), losses, labels, loss, inverse_count, rows)
    return loss, (logits, labels, saved, inverse_count, smoothing)


def softmax_cross_entropy_backward(dloss: Array | float, cache: Any) -> Array:
    """Replaces `functional.softmax_cross_entropy_backward`."""
    logits, labels, saved, inverse_count, smoothing = cache
    n_classes = logits.shape[-1]
    if not isinstance(dloss, float | int):
        dloss, inverse_count = 1.0, inverse_count * dloss
    dlogits = array_module(logits).empty(logits.shape, dtype=logits.dtype)
    CROSS_ENTROPY.launch(
        "softmax_cross_entropy_backward",
        per_row(labels.size, n_classes),
        logits,
        labels,
        saved,
        inverse_count,
        float(dloss),
        smoothing,
        dlogits,
        n_classes,
    )
    return dlogits
