"""Layer norm, and residual connection + dropout + layer norm, one block per row."""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.engine.context import EngineContext
from npformer.engine.gpu.dropout import mask_on_device
from npformer.engine.gpu.source import Source, contiguous, per_row
from npformer.engine.gpu.sums import Columns, column_sums
from npformer.functional.layer_norm import check_layer_norm

NORMS = Source("norms")


def layer_norm(
    x: Array, gamma: Array, beta: Array, eps: float = 1e-5, *, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.layer_norm`."""
    return residual_norm(x, None, gamma, beta, eps, 0.0, context)


def layer_norm_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Replaces `functional.layer_norm_backward`."""
    dx, _, dgamma, dbeta = residual_norm_backward(dy, cache)
    return dx, dgamma, dbeta


def residual_norm(
    x: Array, y: Any, gamma: Array, beta: Array, eps: float, rate: float, context: EngineContext
) -> tuple[Array, Any]:
    """Replaces `functional.dropout` of y, x + y, and `functional.layer_norm` of the sum.

    z = layer_norm(x + dropout(y)), or without y layer_norm(x).
    """
    check_layer_norm(x, gamma, beta, eps)
    if y is not None:
        checks.floating(x=x, y=y)
        checks.shape("y", y, x.shape)
        y = contiguous(y)
    generator = context.dropout_generator() if rate > 0.0 else None
    is_kept = None if generator is None else mask_on_device(x.shape, rate, generator, x)
    scale = 1.0 / (1.0 - float(rate))
    xp, x, d = array_module(x), contiguous(x), gamma.shape[0]
    n = x.size // d
    z = xp.empty(x.shape, dtype=x.dtype)
    # Without a backward pass the normalised rows are not needed, and z takes their place.
    normalised = xp.empty(x.shape, dtype=x.dtype) if context.keep else z
    inverse_std = xp.empty(n, dtype=x.dtype)
    NORMS.launch(
        "residual_norm",
        per_row(n, d),
        x,
        y,
        is_kept,
        scale,
        gamma,
        beta,
        float(eps),
        normalised,
        inverse_std,
        z,
        d,
    )
    return z, (normalised, inverse_std, gamma, is_kept, scale)


def residual_norm_backward(dz: Array, cache: Any) -> tuple[Array, Array, Array, Array]:
    """Replaces `functional.layer_norm_backward`, then `functional.dropout_backward`.

    Gradients: dx, dy, dgamma, dbeta. Without dropout dx and dy are the same array.
    """
    normalised, inverse_std, gamma, is_kept, scale = cache
    xp, dz = array_module(dz), contiguous(dz)
    n, d = inverse_std.size, gamma.shape[0]
    dsum = xp.empty(dz.shape, dtype=dz.dtype)
    dy = dsum if is_kept is None else xp.empty(dz.shape, dtype=dz.dtype)
    NORMS.launch(
        "residual_norm_backward",
        per_row(n, d),
        dz,
        normalised,
        inverse_std,
        gamma,
        is_kept,
        scale,
        dsum,
        dy,
        d,
    )
    c = Columns(n, d)
    sums = xp.empty((c.groups, 2 * d), dtype=dz.dtype)
    NORMS.launch("residual_norm_backward_of_parameters", c.grid, dz, normalised, sums, *c.sizes)
    dgamma_dbeta = column_sums(sums)
    return dsum, dy, dgamma_dbeta[:d], dgamma_dbeta[d:]
