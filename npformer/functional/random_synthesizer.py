"""The Random Synthesizer, whole and factorized: one table of weights for every sequence.

Tay et al., 2020, arXiv 2005.00743, equations (4) to (6).
"""

from __future__ import annotations

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.averaging import average, average_backward


def random_scores(R: Array, length: int) -> tuple[Array, Any]:
    """S = R, cropped to the sequence: a table that no token has a say in.

    Parameters
    ----------
    R : array, shape (max_len, max_len), or (heads, max_len, max_len)
        Trained, or drawn once and left alone.
    length : int
        Of the sequence; the table's first rows and columns are used.

    Returns
    -------
    scores : array, shape (length, length), or (heads, length, length)
    cache : opaque
        For `random_scores_backward`.
    """
    checks.floating(R=R)
    checks.shape("R", R, (None, "max_len", "max_len"))
    checks.shape("R", R, (None, R.shape[-1], R.shape[-1]), "It is square")
    _check_length(length, R.shape[-1])
    # A copy: scores that are a view of the table would change it when they are written to.
    return R[..., :length, :length].copy(), (R.shape, length)


def random_scores_backward(dscores: Array, cache: Any) -> Array:
    """Gradient of `random_scores`: 0 outside of the crop.

    Parameters
    ----------
    dscores : array, shape of the scores
    cache : opaque
        From `random_scores`.

    Returns
    -------
    dR : array, shape of R
    """
    shape, length = cache
    dR = array_module(dscores).zeros(shape, dtype=dscores.dtype)
    # scores = R[..., :length, :length]
    dR[..., :length, :length] = dscores
    return dR


def factorized_random_scores(R1: Array, R2: Array, length: int) -> tuple[Array, Any]:
    """S = R1 R2^T, cropped to the sequence.

    Parameters
    ----------
    R1, R2 : array, shape (max_len, k), or (heads, max_len, k)
        k is 8 in the paper: 2 k max_len numbers instead of max_len^2.
    length : int
        Of the sequence; the first rows of both are used.

    Returns
    -------
    scores : array, shape (length, length), or (heads, length, length)
    cache : opaque
        For `factorized_random_scores_backward`.
    """
    checks.floating(R1=R1, R2=R2)
    checks.shape("R1", R1, (None, "max_len", "k"))
    checks.shape("R2", R2, R1.shape, "The two factors are alike")
    _check_length(length, R1.shape[-2])
    left, right = R1[..., :length, :], R2[..., :length, :]
    scores = left @ right.swapaxes(-1, -2)  # [.., length, k], [.., k, length]
    return scores, (left, right, R1.shape)


def factorized_random_scores_backward(dscores: Array, cache: Any) -> tuple[Array, Array]:
    """Gradients of `factorized_random_scores`.

    Parameters
    ----------
    dscores : array, shape of the scores
    cache : opaque
        From `factorized_random_scores`.

    Returns
    -------
    dR1, dR2 : array
    """
    left, right, shape = cache
    xp = array_module(dscores)
    length = left.shape[-2]
    dR1, dR2 = (xp.zeros(shape, dtype=dscores.dtype) for _ in range(2))
    # scores = left @ right^T
    dR1[..., :length, :] = dscores @ right
    dR2[..., :length, :] = dscores.swapaxes(-1, -2) @ left
    return dR1, dR2


def random_synthesizer(
    value: Array, R: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Y = softmax(R) V: the Random Synthesizer.

    Parameters
    ----------
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        G(X) in the paper: what is averaged.
    R : array, shape (max_len, max_len), or (heads, max_len, max_len)
        Trained, or drawn once and left alone ("fixed"). Cropped to the sequence.
    mask : bool array, broadcastable to (batch, [heads,] length, length), optional
        True = keep.
    causal : bool
        Token i sees the tokens 0 to i only.

    Returns
    -------
    y : array, shape of value
    cache : opaque
        For `random_synthesizer_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit, or the sequence is longer than max_len.
    """
    checks.floating(value=value, R=R)
    checks.shape("value", value, (None, "length", "d_value"))
    scores, scores_cache = random_scores(R, value.shape[-2])
    y, average_cache = average(scores, value, mask, causal)
    return y, (scores_cache, average_cache)


def random_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """Gradients of `random_synthesizer`.

    Parameters
    ----------
    dy : array, shape of value
        Gradient of the loss with respect to y.
    cache : opaque
        From `random_synthesizer`.

    Returns
    -------
    dvalue, dR : array
    """
    scores_cache, average_cache = cache
    dscores, dvalue = average_backward(dy, average_cache)
    return dvalue, random_scores_backward(dscores, scores_cache)


def factorized_random_synthesizer(
    value: Array, R1: Array, R2: Array, mask: Array | None = None, causal: bool = False
) -> tuple[Array, Any]:
    """Y = softmax(R1 R2^T) V: the Factorized Random Synthesizer.

    Parameters
    ----------
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        G(X) in the paper: what is averaged.
    R1, R2 : array, shape (max_len, k), or (heads, max_len, k)
        Factors of low rank.
    mask : bool array, broadcastable to (batch, [heads,] length, length), optional
        True = keep.
    causal : bool
        Token i sees the tokens 0 to i only.

    Returns
    -------
    y : array, shape of value
    cache : opaque
        For `factorized_random_synthesizer_backward`.

    Raises
    ------
    ValueError
        Shapes do not fit, or the sequence is longer than max_len.
    """
    checks.floating(value=value, R1=R1, R2=R2)
    checks.shape("value", value, (None, "length", "d_value"))
    scores, scores_cache = factorized_random_scores(R1, R2, value.shape[-2])
    y, average_cache = average(scores, value, mask, causal)
    return y, (scores_cache, average_cache)


def factorized_random_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Gradients of `factorized_random_synthesizer`.

    Parameters
    ----------
    dy : array, shape of value
        Gradient of the loss with respect to y.
    cache : opaque
        From `factorized_random_synthesizer`.

    Returns
    -------
    dvalue, dR1, dR2 : array
    """
    scores_cache, average_cache = cache
    dscores, dvalue = average_backward(dy, average_cache)
    return dvalue, *factorized_random_scores_backward(dscores, scores_cache)


def _check_length(length: int, max_len: int) -> None:
    if length > max_len:
        raise ValueError(
            f"the sequence has length {length}; expected at most {max_len}, the length that the "
            "table was made for. Cut the sequence, or build it with a larger max_len"
        )
