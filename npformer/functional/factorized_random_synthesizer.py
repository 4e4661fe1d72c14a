"""The Factorized Random Synthesizer: the Random Synthesizer's table as a product of low rank.

Tay et al., 2020, arXiv 2005.00743, equation (6).
"""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.averaging import average, average_backward
from npformer.functional.random_synthesizer import check_length
from npformer.functional.sums import lay_out


def factorized_random_scores(R1: Array, R2: Array, length: int) -> tuple[Array, Any]:
    """S = (R1 R2^T)[..., :length, :length], computed from the first rows of both factors.

    Parameters
    ----------
    R1, R2 : array, shape (max_len, k), or (heads, max_len, k)
        In the paper k = 8. They hold 2 k max_len numbers instead of max_len^2.
    length : int
        Length of the sequence, at most max_len.
    """
    checks.floating(R1=R1, R2=R2)
    checks.shape("R1", R1, (None, "max_len", "k"))
    checks.shape("R2", R2, R1.shape, "The two factors have the same shape")
    length = check_length(length, R1.shape[-2])
    # no input is read [.., length, k]
    left, right = lay_out(R1[..., :length, :]), lay_out(R2[..., :length, :])
    scores = left @ right.swapaxes(-1, -2)  # [.., length, k], [.., k, length]
    return scores, (left, right, R1.shape)


def factorized_random_scores_backward(dscores: Array, cache: Any) -> tuple[Array, Array]:
    """dR1 = dS R2 and dR2 = dS^T R1; 0 in unused rows.

    In S_ij = sum_k R1_ik R2_jk, R1_ik is in row i of S and R2_jk in column j: dR1_ik is the sum
    over j of dS_ij R2_jk, and dR2_jk that over i of dS_ij R1_ik.
    """
    left, right, shape = cache
    xp = array_module(left)
    length = left.shape[-2]
    checks.gradient(dscores, (*shape[:-2], length, length), "dscores")
    dscores = lay_out(dscores)
    # rows that were not used keep 0
    dR1, dR2 = (xp.zeros(shape, dtype=dscores.dtype) for _ in range(2))
    # scores = left @ right^T
    dR1[..., :length, :] = dscores @ right
    dR2[..., :length, :] = dscores.swapaxes(-1, -2) @ left  # [.., length, length], [.., length, k]
    return dR1, dR2


def factorized_random_synthesizer(
    value: Array, R1: Array, R2: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Y = softmax(R1 R2^T) V: the Factorized Random Synthesizer.

    Parameters
    ----------
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        What is averaged. y has the same shape.
    R1, R2, mask, causal
        As in `factorized_random_scores` and `average`.
    """
    checks.floating(value=value, R1=R1, R2=R2)
    checks.shape("value", value, (None, "length", "d_value"))
    # the same for each input
    scores, scores_cache = factorized_random_scores(R1, R2, value.shape[-2])
    y, average_cache = average(scores, value, mask, causal)  # softmax(S) V, as in attention
    return y, (scores_cache, average_cache)


def factorized_random_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """dvalue, dR1 and dR2: back through the average, then through the product."""
    scores_cache, average_cache = cache
    # y = average(scores, value)
    dscores, dvalue = average_backward(dy, average_cache)
    # scores = factorized_random_scores(R1, R2)
    return dvalue, *factorized_random_scores_backward(dscores, scores_cache)
