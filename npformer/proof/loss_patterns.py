"""An epsilon in a loss, log(p + eps), beside the gradient of log p, or the other way round.

With the probability p of the right class, the derivative of -log(p + eps) is that of -log p times
p / (p + eps).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npformer.proof.evidence import Pattern, WrongGradient

LARGEST_EPSILON = 0.1


def find_epsilon(wrong: WrongGradient) -> Pattern | None:
    """Find an epsilon that the loss has and its gradient lacks, or the other way round."""
    if wrong.comparable.sum() < 3:
        return None
    for p in _probabilities(wrong):
        epsilon = _fit(wrong.analytic - wrong.numeric, wrong.numeric / p, wrong.comparable)
        if epsilon and wrong.explains(wrong.numeric * (1.0 + epsilon / p)):
            words = f"that of log(p), though the loss has log(p + eps) with eps = {epsilon:.3g}"
            return Pattern("epsilon", words)
        epsilon = _fit(wrong.numeric - wrong.analytic, wrong.analytic / p, wrong.comparable)
        if epsilon and wrong.explains(wrong.numeric / (1.0 + epsilon / p)):
            words = f"that of log(p + eps) with eps = {epsilon:.3g}, though the loss has log(p)"
            return Pattern("epsilon", words)
    return None


def find_target_by_value(wrong: WrongGradient) -> Pattern | None:
    """Find a target that is looked for by its value: all that are equal to it are taken for it.

    With a row's logits a, b, a and the label 0, a gradient p - (x == x[label]) is too small by the
    same number in entry 2, too.
    """
    x = wrong.evidence.inputs.get(wrong.name)
    if x is None or x.ndim == 0 or x.shape != wrong.error.shape:
        return None
    for labels in wrong.evidence.inputs.values():
        of_rows = labels.dtype.kind in "iu" and labels.shape == x.shape[:-1] and labels.size > 0
        if not of_rows or labels.min() < 0 or labels.max() >= x.shape[-1]:
            continue
        is_target = np.arange(x.shape[-1]) == labels[..., None]
        of_target = np.take_along_axis(x, labels[..., None], axis=-1)
        is_equal = (x == of_target) & ~is_target
        errors = wrong.error[is_equal & wrong.comparable]
        if errors.size and wrong.explains(wrong.numeric + is_equal * errors.mean()):
            words = (
                "wrong only in entries that are equal to that of the right class: the target is "
                "found by its value, not by its index"
            )
            return Pattern("target by value", words)
    return None


def _probabilities(wrong: WrongGradient) -> Iterator[np.ndarray]:
    """Yield what may be the probabilities of the right classes, in a shape that fits."""
    x = wrong.evidence.inputs.get(wrong.name)
    if x is None or x.ndim == 0:
        return
    if x.min(initial=1.0) > 0.0 and x.max(initial=0.0) <= 1.0:
        yield x
        return
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    softmax = shifted / shifted.sum(axis=-1, keepdims=True)
    for labels in wrong.evidence.inputs.values():
        of_rows = labels.dtype.kind in "iu" and labels.shape == x.shape[:-1] and labels.size > 0
        if of_rows and labels.max() < x.shape[-1]:
            yield np.take_along_axis(softmax, np.maximum(labels, 0)[..., None], axis=-1)
        elif labels.shape == x.shape and labels is not x:  # one-hot targets
            yield (softmax * labels).sum(axis=-1, keepdims=True) + (labels.sum(-1)[..., None] == 0)


def _fit(error: np.ndarray, slope: np.ndarray, comparable: np.ndarray) -> float:
    """Return the epsilon with which error = epsilon slope, by least squares; 0 if it is none."""
    slopes = slope[comparable]
    square = float(slopes @ slopes)
    if not square or not np.isfinite(square):
        return 0.0
    epsilon = float(error[comparable] @ slopes) / square
    return epsilon if 0.0 < epsilon <= LARGEST_EPSILON else 0.0
