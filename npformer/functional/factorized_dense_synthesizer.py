"""The Factorized Dense Synthesizer: a row of scores is the outer product of two short rows.

Tay et al., 2020, arXiv 2005.00743, section 3.1.
"""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.averaging import average, average_backward
from npformer.functional.dense_synthesizer import check_value, dense_scores, dense_scores_backward
from npformer.functional.sums import sum_along


def factorized_dense_scores(
    x: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    V1: Array,
    c1: Array,
    V2: Array,
    c2: Array,
    columns: int,
) -> tuple[Array, Any]:
    """S_i = tile(F(X_i)) * repeat(G(X_i)): a * b scores from a row of a and a row of b.

    Parameters
    ----------
    x, W1, b1, W2, b2
        The map F with a columns, as in `dense_scores`.
    V1, c1, V2, c2
        The map G with b columns, likewise.
    columns : int
        How many of the a * b scores are used, from the first on.

    Returns
    -------
    scores : array, shape (batch, length, columns), or (batch, heads, length, columns)
    """
    checks.floating(x=x, W1=W1, b1=b1, W2=W2, b2=b2, V1=V1, c1=c1, V2=V2, c2=c2)
    checks.shape("W2", W2, (None, "rows", "columns"))
    checks.shape("V2", V2, (None, "rows", "columns"))
    columns = checks.whole("columns", columns, at_least=0)
    short, short_cache = dense_scores(x, W1, b1, W2, b2, W2.shape[-1])  # [.., length, a]
    long, long_cache = dense_scores(x, V1, c1, V2, c2, V2.shape[-1])  # [.., length, b]
    a, b = short.shape[-1], long.shape[-1]  # a b columns from a + b numbers for each token
    if columns > a * b:
        raise ValueError(
            f"x has length {columns}; expected at most {a * b}, the product of W2's {a} and V2's "
            f"{b} columns. Truncate the sequence, or build the synthesizer with a larger max_len"
        )
    # The paper tiles F(X_i) b times, repeats each entry of G(X_i) a times, and multiplies. Score j
    # is then F_(j mod a) G_(j div a): the outer product, read row by row.
    outer = long[..., :, None] * short[..., None, :]  # [.., length, b, a]
    scores = outer.reshape(*outer.shape[:-2], b * a)[..., :columns]  # the first `columns` of a b
    return scores, (short, long, columns, short_cache, long_cache)


def factorized_dense_scores_backward(dscores: Array, cache: Any) -> tuple[Array, ...]:
    """dx, dW1 to db2 and dV1 to dc2: back through an outer product and both maps.

    An entry of F is a factor of b scores, and an entry of G of a scores. Its gradient is the sum of
    their gradients, each times the other factor. Both maps use x, so dx is the sum of two terms.
    """
    short, long, columns, short_cache, long_cache = cache
    checks.gradient(dscores, (*short.shape[:-1], columns), "dscores")
    a, b = short.shape[-1], long.shape[-1]
    douter_flat = array_module(dscores).zeros((*dscores.shape[:-1], b * a), dtype=dscores.dtype)
    # scores = outer, flattened, [..., :columns]
    douter_flat[..., :columns] = dscores
    # [.., length, b, a]; 0 where not used
    douter = douter_flat.reshape(*douter_flat.shape[:-1], b, a)
    # outer = long[..., :, None] * short[..., None, :]
    dshort = sum_along(douter * long[..., :, None], axis=-2)
    dlong = sum_along(douter * short[..., None, :], axis=-1)  # [.., length, b]
    # long, short = dense_scores(x, V1, c1, V2, c2), dense_scores(x, W1, b1, W2, b2)
    dx_long, *dG = dense_scores_backward(dlong, long_cache)
    dx_short, *dF = dense_scores_backward(dshort, short_cache)
    return dx_short + dx_long, *dF, *dG  # x was used by both maps


def factorized_dense_synthesizer(
    x: Array,
    value: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    V1: Array,
    c1: Array,
    V2: Array,
    c2: Array,
    mask: Array | None = None,
    causal: bool = False,
) -> tuple[Array, Any]:
    """Y = softmax(tile(F(X)) * repeat(G(X))) V: the Factorized Dense Synthesizer.

    Parameters
    ----------
    x, W1, b1, W2, b2, V1, c1, V2, c2
        As in `factorized_dense_scores`.
    value : array, shape (batch, length, d_value), or (batch, heads, length, d_value)
        What is averaged. y has the same shape.
    mask, causal
        As in `average`.
    """
    checks.floating(x=x, value=value)
    checks.shape("x", x, (None, "length", "d_model"))
    # From one token alone: no query meets a key [batch, heads, length, length]
    scores, scores_cache = factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2, x.shape[-2])
    check_value(value, scores)
    y, average_cache = average(scores, value, mask, causal)  # softmax(S) V, as in attention
    return y, (scores_cache, average_cache)


def factorized_dense_synthesizer_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """dx, dvalue, dW1 to db2, dV1 to dc2: back through the average, then through the scores."""
    scores_cache, average_cache = cache
    # y = average(scores, value)
    dscores, dvalue = average_backward(dy, average_cache)
    # scores = factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2)
    dx, *dmaps = factorized_dense_scores_backward(dscores, scores_cache)
    return dx, dvalue, *dmaps  # dmaps: of F's four arrays, then of G's
