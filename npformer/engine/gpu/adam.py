"""Adam over a flat buffer in one launch, and clipping in three."""

import math

from npformer.core import Array, array_module
from npformer.engine.adam_numbers import adam_numbers
from npformer.engine.gpu.source import ELEMENTWISE, Source, contiguous, per_entry

ADAM = Source("adam")

SQUARES = 1024
"""At most this many blocks add up squares; then one more block adds up their sums."""


def adam_update_kernel(
    theta: Array,
    g: Array,
    m: Array,
    v: Array,
    *,
    t: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float = 0.0,
) -> None:
    """Replaces `optim.adam_update`."""
    step_size, scaled_eps, shrink = adam_numbers(t, lr, betas, eps, weight_decay)
    beta1, beta2 = betas
    written = (theta, m, v)
    theta_, m_, v_ = (contiguous(x) for x in written)
    ADAM.launch(
        "adam_update",
        per_entry(theta.size),
        theta_,
        contiguous(g),
        m_,
        v_,
        float(step_size),
        float(beta1),
        float(1.0 - beta1),
        float(beta2),
        math.sqrt(1.0 - beta2),
        float(scaled_eps),
        float(shrink),
        theta.size,
    )
    for x, x_ in zip(written, (theta_, m_, v_), strict=True):
        if x_ is not x:  # a view that is not contiguous: the kernel wrote into a copy
            x[...] = x_


def clip_by_global_norm_kernel(flat: Array, max_norm: float) -> Array:
    """Replaces `optim.clip_by_global_norm` of a flat buffer; the host does not wait."""
    xp = array_module(flat)
    n = flat.size
    blocks = min(SQUARES, max(per_entry(n, per_thread=4)[0], 1))
    sums = xp.empty(2 * blocks, dtype=flat.dtype)
    norm, factor = (xp.empty((), dtype=flat.dtype) for _ in range(2))
    ADAM.launch("sums_of_squares", (blocks, ELEMENTWISE), flat, sums, n)
    ADAM.launch("clipping_factor", (1, ELEMENTWISE), sums, float(max_norm), norm, factor, blocks)
    ADAM.launch("multiply_by_factor", per_entry(n), flat, factor, n)
    return norm
