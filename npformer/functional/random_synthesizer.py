"""The Random Synthesizer: one table of weights for every sequence.

Tay et al., 2020, arXiv 2005.00743, equations (4) and (5).
"""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.averaging import average, average_backward


def random_scores(R: Array, length: int) -> tuple[Array, Any]:
    """S = R[..., :length, :length]: the same for every sequence of that length.

    Parameters
    ----------
    R : array, shape (max_len, max_len), or (heads, max_len, max_len)
        Trained, or random and never trained ("fixed").
    length : int
        Length of the sequence, at most max_len.
    """
    checks.floating(R=R)
    checks.shape("R", R, (None, "max_len", "max_len"))
    checks.shape("R", R, (None, R.shape[-1], R.shape[-1]), "It is square")
    length = check_length(length, R.shape[-1])
    # A copy, because writing to a view would change the table.
    return R[..., :length, :length].copy(), (R.shape, length)


def random_scores_backward(dscores: Array, cache: Any) -> Array:
    """dR is dS in the part of the table that was used, and 0 elsewhere.

    Every S_ij is R_ij itself, so its derivative is 1. The whole batch uses one S, and dS is already
    the sum over it (`average_backward`).
    """
    shape, length = cache
    checks.gradient(dscores, (*shape[:-2], length, length), "dscores")
    dR = array_module(dscores).zeros(shape, dtype=dscores.dtype)
    # scores = R[..., :length, :length]
    dR[..., :length, :length] = dscores
    return dR


def random_synthesizer(
    value: Array, R: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Y = softmax(R) V: the Random Synthesizer.

    Parameters
    ----------
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        G(X) in the paper: what is averaged. y has the same shape.
    R, mask, causal
        As in `random_scores` and `average`.
    """
    checks.floating(value=value, R=R)
    checks.shape("value", value, (None, "length", "d_value"))
    scores, scores_cache = random_scores(R, value.shape[-2])  # R, cropped: the same for each input
    y, average_cache = average(scores, value, mask, causal)  # softmax(S) V, as in attention
    return y, (scores_cache, average_cache)


def random_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """dvalue and dR: back through the average, then through the crop."""
    scores_cache, average_cache = cache
    # y = average(scores, value)
    dscores, dvalue = average_backward(dy, average_cache)
    # scores = random_scores(R)
    return dvalue, random_scores_backward(dscores, scores_cache)


def check_length(length: int, max_len: int) -> int:
    """Return the length of a sequence after checking that a table is large enough for it."""
    length = checks.whole("length", length, at_least=0)
    if length > max_len:
        raise ValueError(
            f"the sequence has length {length}; expected at most {max_len}, the length that the "
            "table was made for. Truncate the sequence, or build it with a larger max_len"
        )
    return length
