"""A mixture of scores: attention and synthesizers, weighed by trained shares.

Tay et al., 2020, arXiv 2005.00743, section 3.3.
"""

from __future__ import annotations

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.broadcasting import broadcast_shape, sum_to
from npformer.functional.softmax import softmax, softmax_backward


def mixture_scores(logits: Array, *scores: Array) -> tuple[Array, Any]:
    """S = sum_i alpha_i S_i, alpha = softmax(logits): the shares sum to 1.

    Parameters
    ----------
    logits : array, shape (n,)
        One for each part; equal logits mean equal shares.
    *scores : array, shape (..., length, length)
        n of them; their shapes broadcast, so a table may stand beside a batch.

    Returns
    -------
    scores : array, the parts' broadcast shape
    cache : opaque
        For `mixture_scores_backward`.

    Raises
    ------
    ValueError
        There are not as many logits as parts, none at all, or parts that do not fit each other.
    """
    checks.floating(logits=logits, **{f"scores[{i}]": s for i, s in enumerate(scores)})
    checks.shape("logits", logits, (len(scores),), "One share for each of the scores")
    if not scores:
        raise ValueError("got no scores; expected at least one part to mix")
    shape: tuple[int, ...] = scores[0].shape
    for i, part in enumerate(scores):
        together = broadcast_shape(shape, part.shape)
        if together is None:
            raise ValueError(
                f"scores[{i}] has shape {tuple(part.shape)} and those before it {tuple(shape)}; "
                "expected the same axes, or 1 or none where one table serves all"
            )
        shape = together
    alpha, softmax_cache = softmax(logits)
    total = alpha[0] * scores[0]
    for i in range(1, len(scores)):
        total = total + alpha[i] * scores[i]
    return total, (alpha, scores, softmax_cache)


def mixture_scores_backward(dscores: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients of `mixture_scores`.

    Parameters
    ----------
    dscores : array
        Gradient of the loss with respect to the mixed scores.
    cache : opaque
        From `mixture_scores`.

    Returns
    -------
    dlogits, *dparts : array
        In the shapes of logits and of each part.
    """
    alpha, scores, softmax_cache = cache
    xp = array_module(dscores)
    # total = sum_i alpha[i] * scores[i]
    dparts = [sum_to(dscores * alpha[i], part.shape) for i, part in enumerate(scores)]
    dalpha = xp.stack([(dscores * part).sum() for part in scores])
    return softmax_backward(dalpha, softmax_cache), *dparts
