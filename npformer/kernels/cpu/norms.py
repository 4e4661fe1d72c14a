"""Layer norm, and residual connection + dropout + layer norm, a piece of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.dropout import draw_kept
from npformer.functional.layer_norm import check_layer_norm
from npformer.kernels.cpu.rows import averaging, column_sums, pieces
from npformer.module import Context


def layer_norm(
    x: Array, gamma: Array, beta: Array, eps: float = 1e-5, *, context: Context
) -> tuple[Array, Any]:
    """`functional.layer_norm`.

    Parameters
    ----------
    x, gamma, beta, eps
        As there.
    context : Context
        Lends the memory.
    """
    check_layer_norm(x, gamma, beta, eps)
    z, (norm_cache, _) = _forward(x, None, gamma, beta, eps, None, 1.0, context)
    return z, norm_cache


def layer_norm_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """`functional.layer_norm_backward`."""
    dsum, _, dgamma, dbeta = _backward(dy, cache, None, 1.0)
    return dsum, dgamma, dbeta


def residual_norm(
    x: Array, y: Array, gamma: Array, beta: Array, eps: float, rate: float, context: Context
) -> tuple[Array, Any]:
    """z = layer_norm(x + dropout(y)).

    Parameters
    ----------
    x, y : array, shape (..., d)
    gamma, beta : array, shape (d,)
    eps : float
        The norm's.
    rate : float
        Dropout's; drawn from ``context.generator`` while training.
    context : Context
        Lends the memory.
    """
    check_layer_norm(x, gamma, beta, eps)
    generator = context.draws() if rate > 0.0 else None
    kept = None if generator is None else draw_kept(y.shape, rate, generator)
    return _forward(x, y, gamma, beta, eps, kept, 1.0 / (1.0 - rate), context)


def residual_norm_backward(dz: Array, cache: Any) -> tuple[Array, Array, Array, Array]:
    """Gradients: dx, dy, dgamma, dbeta. Without dropout dx and dy are one array."""
    norm_cache, (kept, scale) = cache
    return _backward(dz, norm_cache, kept, scale)


def _forward(
    x: Array,
    y: Array | None,
    gamma: Array,
    beta: Array,
    eps: float,
    kept: Array | None,
    scale: float,
    context: Context,
) -> tuple[Array, Any]:
    d = x.shape[-1]
    x_rows = x.reshape(-1, d)
    y_rows = None if y is None else y.reshape(-1, d)
    kept_rows = None if kept is None else kept.reshape(-1, d)
    n = len(x_rows)
    z = context.empty((n, d), x)
    # Without a backward pass the normalised rows are of no further use: z is made in their place.
    normalised = context.empty((n, d), x) if context.keep else z
    inverse_std = np.empty((n, 1), x.dtype)
    mean_of = averaging(d, x.dtype)
    for piece in pieces(n, d):
        row = normalised[piece]
        if y_rows is None:
            row_source = x_rows[piece]
        else:
            if kept_rows is None:
                np.add(x_rows[piece], y_rows[piece], out=row)
            else:
                np.multiply(y_rows[piece], kept_rows[piece], out=row)
                row *= scale
                row += x_rows[piece]
            row_source = row
        np.subtract(row_source, (row_source @ mean_of)[:, None], out=row)
        variance = np.vecdot(row, row)[:, None]
        variance *= 1.0 / d
        variance += eps
        np.sqrt(variance, out=variance)
        np.divide(1.0, variance, out=inverse_std[piece])
        row *= inverse_std[piece]
        np.multiply(row, gamma, out=z[piece])
        z[piece] += beta
    return z.reshape(x.shape), ((normalised, inverse_std, gamma, x.shape, context), (kept, scale))


def _backward(
    dz: Array, cache: Any, kept: Array | None, scale: float
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients of the sum that was normalised, of its second term, gamma and beta.

    As in `functional.layer_norm_backward`, with sums as products: the mean of g = dz gamma is
    dz @ gamma / d, and the mean of g n is (dz n) @ gamma / d, where dz n is what gamma receives.
    """
    normalised, inverse_std, gamma, shape, context = cache
    n, d = normalised.shape
    rows = dz.reshape(-1, d)
    dsum = context.empty((n, d), normalised)
    kept_rows = None if kept is None else kept.reshape(-1, d)
    dy = dsum if kept_rows is None else context.empty((n, d), normalised)
    dgamma, dbeta = np.zeros_like(gamma), np.zeros_like(gamma)
    mean_of = gamma * (1.0 / d)
    scratch = np.empty_like(normalised[next(pieces(n, d))]) if n else normalised
    for piece in pieces(n, d):
        g, row = rows[piece], normalised[piece]
        along = scratch[: len(g)]
        np.multiply(g, row, out=along)
        dgamma += column_sums(along)
        dbeta += column_sums(g)
        along_normalised = (along @ mean_of)[:, None]
        along_constant = (g @ mean_of)[:, None]
        out = dsum[piece]
        np.multiply(g, gamma, out=out)
        np.multiply(row, along_normalised, out=along)
        along += along_constant
        out -= along
        out *= inverse_std[piece]
        if kept_rows is not None:
            np.multiply(out, kept_rows[piece], out=dy[piece])
            dy[piece] *= scale
    return dsum.reshape(shape), dy.reshape(shape), dgamma, dbeta
