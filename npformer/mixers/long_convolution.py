"""Gated long convolutions: Fourier transforms that do not look ahead (Poli et al., 2023)."""

from typing import Any, Self

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Parameter,
    Seed,
    array_module,
    checks,
    generators,
)
from npformer.core import initializers as init
from npformer.functional.sums import sum_along
from npformer.layers import Linear
from npformer.layers.pooling import without_padding
from npformer.layers.state import State, StateShapes, take_positions
from npformer.mixers.mixer import Mixer, MixerSettings, convolution_matrices, mask_weights

SHORT = 3
"""Tokens that each output of the convolution before the gates sees."""


class GatedConvolution(Mixer):
    """y = (x0 s) W_O, s = k * z + D z, z = x1 v, (x0, x1, v) = short(x W + b): Hyena of order 2.

    The convolution of z with k is as long as the sequence, feature by feature, and is computed by a
    Fourier transform; D z adds the token itself. The products x1 v and x0 s are gates: they make
    the mixing weights depend on the tokens. Tokens never see later ones.
    Padding is set to 0 before tokens are mixed.

    Parameters
    ----------
    d_model, max_len : int
        Features of a token, and length of the longest sequence.
    initializer : str
        A name in `INITIALIZERS`: what the projections are drawn from.

    Attributes
    ----------
    inner, output : Linear
        W and W_O.
    short : Parameter, shape (3, 3 * d_model)
        The kernels of the short convolution.
    kernel : Parameter, shape (max_len, d_model)
        k: row j is the weight of the token j places back. Drawn so that it decays, each feature at
        its own rate, and so that s has the variance of z.
    skip : Parameter, shape (d_model,)
        D.
    """

    causal = True

    def __init__(
        self,
        d_model: int,
        max_len: int = 128,
        *,
        initializer: str = "xavier_uniform",
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        d_model = checks.positive("d_model", d_model)
        max_len = checks.positive("max_len", max_len)
        rng = generators.from_seed(seed)
        init_linear = init.INITIALIZERS.make(initializer)
        self.inner = Linear(d_model, 3 * d_model, seed=rng, dtype=dtype, init=init_linear)
        init_short = init.normal(SHORT**-0.5)
        self.short = Parameter(init.draw(init_short, rng, (SHORT, 3 * d_model), dtype))
        self.kernel = Parameter(init.draw(init.decaying, rng, (max_len, d_model), dtype))
        self.skip = Parameter(init.draw(init.normal(1.0), rng, (d_model,), dtype))
        self.output = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init_linear)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls(**settings.only("d_model", "max_len", "initializer"), seed=seed, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        mask = context.mask
        inner, inner_cache = self.inner.forward(without_padding(x, mask), context)
        p = without_padding(inner, mask)  # [batch, length, 3 d_model]
        near, short_cache = F.short_convolution(p, self.short.value)
        x0, x1, v = _thirds(near)
        z = without_padding(x1 * v, mask)
        s, long_cache = F.causal_convolution(z, self.kernel.value)
        s = s + self.skip.value * z
        y, output_cache = self.output.forward(x0 * s, context)
        caches = inner_cache, short_cache, long_cache, output_cache
        y = without_padding(y, mask)
        return y, (caches, (x0, x1, v, z, s), mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        caches, factors, mask = cache
        inner_cache, short_cache, long_cache, output_cache = caches
        x0, x1, v, z, s = factors
        dproduct = self.output.backward(without_padding(dy, mask), output_cache, gradients)
        # y = output(x0 * s)
        dx0 = dproduct * s
        ds = dproduct * x0
        # s = causal_convolution(z, kernel) + skip * z
        dz, dkernel = F.causal_convolution_backward(ds, long_cache)
        gradients.add(self.kernel, dkernel)
        gradients.add(self.skip, sum_along((ds * z).reshape(-1, len(self.skip.value)), axis=0))
        dz = without_padding(dz + self.skip.value * ds, mask)
        # z = x1 * v
        dnear = array_module(dy).concatenate([dx0, dz * v, dz * x1], axis=-1)
        dp, dshort = F.short_convolution_backward(dnear, short_cache)
        gradients.add(self.short, dshort)
        dx = self.inner.backward(without_padding(dp, mask), inner_cache, gradients)
        return without_padding(dx, mask)

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        return {"near": (SHORT - 1, 3 * d_model), "z": (length, d_model)}

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        xp = array_module(x)
        n = x.shape[1]
        mask = context.mask
        inner, _ = self.inner.forward(without_padding(x, mask), context)
        p = xp.concatenate([state["near"], without_padding(inner, mask)], axis=1)
        near, _ = F.short_convolution(p, self.short.value)
        x0, x1, v = _thirds(near[:, SHORT - 1 :])
        state = state.extend(n, context, {"near": _newest(p, mask)}, z=x1 * v)
        z = state.so_far("z")
        at = state.positions(n, z, axis=1)
        if n == 1:
            s = _one_step(z, self.kernel.value, at)
        elif n == 0:
            s = x1
        else:
            s, _ = F.causal_convolution(z, self.kernel.value)
            s = take_positions(s, at)
        s = s + self.skip.value * x1 * v
        y, _ = self.output.forward(x0 * s, context)
        return y, state

    def explain(self, x: Array, context: Context) -> Array:
        mask = context.mask
        inner, _ = self.inner.forward(without_padding(x, mask), context)
        near, _ = F.short_convolution(without_padding(inner, mask), self.short.value)
        x0, x1, _ = _thirds(near)
        matrices = convolution_matrices(self.kernel.value, self.skip.value, x.shape[1])
        weights = array_module(x).einsum("bif,ijf,bjf->bfij", x0, matrices, x1)
        return mask_weights(abs(weights).mean(axis=1, keepdims=True), mask)


def _thirds(x: Array) -> tuple[Array, Array, Array]:
    """Split the features into three equal blocks."""
    d_model = x.shape[-1] // 3
    return x[..., :d_model], x[..., d_model : 2 * d_model], x[..., 2 * d_model :]


def _newest(p: Array, mask: Array | None) -> Array:
    """Return the last tokens of each row that are not padding; `p` begins with earlier ones."""
    if mask is None:
        return p[:, 1 - SHORT :]
    xp = array_module(p)
    at = mask.sum(axis=1)[:, None] + xp.arange(SHORT - 1)
    return p[xp.arange(len(p))[:, None], at]


def _one_step(z: Array, kernel: Array, at: Any) -> Array:
    """Return sum_j k_{t-j} z_j, (batch, 1, d_model), for one token t of each row."""
    xp = array_module(z)
    length = z.shape[1]
    if isinstance(at, slice):
        k = kernel[length - 1 :: -1]
    else:
        distance = at - xp.arange(length)  # [batch, length]
        k = kernel[xp.maximum(distance, 0)] * (distance >= 0)[..., None]
    return (z * k).sum(axis=1, keepdims=True)
