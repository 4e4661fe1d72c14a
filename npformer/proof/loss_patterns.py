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
