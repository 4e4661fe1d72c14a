"""A mixture of scores: a weighted sum of attention's and synthesizers' scores.

Tay et al., 2020, arXiv 2005.00743, section 3.3.
"""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.broadcasting import broadcast_shape, sum_to
from npformer.functional.softmax import softmax, softmax_backward


def mixture_scores(logits: Array, *scores: Array) -> tuple[Array, Any]:
    """S = sum_i alpha_i S_i, where the weights alpha = softmax(logits) sum to 1.

    Parameters
    ----------
    logits : array, shape (n,)
        One for each part; equal logits mean equal weights.
    *scores : array, shape (..., query_length, key_length)
        n parts, whose shapes broadcast: one table for the whole batch is allowed.
    """
    checks.floating(logits=logits, **{f"scores[{i}]": s for i, s in enumerate(scores)})
    checks.shape("logits", logits, (len(scores),), "One weight for each of the scores")
    if not scores:
        raise ValueError("got no scores; expected at least one part to mix")
    # Scores that a whole batch shares have no batch axis: what do all of them broadcast to?
    shape: tuple[int, ...] = scores[0].shape
    for i, table in enumerate(scores):
        checks.shape(f"scores[{i}]", table, (None, "query_length", "key_length"))
        together = broadcast_shape(shape, table.shape, reference=table)
        if together is None:
            raise ValueError(
                f"scores[{i}] has shape {tuple(table.shape)} and those before it {tuple(shape)}; "
                "expected the same axes; an axis may be 1 or missing to broadcast"
            )
        shape = together
    alpha, softmax_cache = softmax(logits)  # how much each kind of scores counts; they sum to 1
    total = alpha[0] * scores[0]  # a number times an array of scores
    for i in range(1, len(scores)):
        total = total + alpha[i] * scores[i]  # [.., length, length]
    return total, (alpha, scores, softmax_cache, total.shape)


def mixture_scores_backward(dscores: Array, cache: Any) -> tuple[Array, ...]:
    """dlogits, then dS_i = alpha_i dS for each part, summed over axes that were broadcast.

    In S = sum_i alpha_i S_i, S_i has the factor alpha_i: dS_i = alpha_i dS. And alpha_i is in all
    of S, times S_i: dalpha_i = sum(dS * S_i). dlogits follows from the softmax.
    """
    alpha, scores, softmax_cache, like = cache
    xp = array_module(alpha)
    checks.gradient(dscores, like, "dscores")
    # total = sum_i alpha[i] * scores[i]
    dparts = [sum_to(dscores * alpha[i], table.shape) for i, table in enumerate(scores)]
    dalpha = xp.stack([(dscores * table).sum() for table in scores])  # one number for each kind
    # alpha = softmax(logits)
    return softmax_backward(dalpha, softmax_cache), *dparts
