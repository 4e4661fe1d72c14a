"""Diagonal state spaces as a mixer (Gu et al., 2022, arXiv 2206.11893, S4D)."""

import math
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
from npformer.layers import Linear
from npformer.layers.pooling import without_padding
from npformer.layers.state import State, StateShapes
from npformer.mixers.mixer import Mixer, MixerSettings, between_kept, looking_back

N_STATES = 16
"""Complex numbers that are kept of each feature."""


class StateSpace(Mixer):
    """y = gelu(k * x + D x) W_O, with the kernel k of a diagonal state space: `state_space_kernel`.

    In training the convolution is computed by a Fourier transform, for whole sequences. Token by
    token it is a recurrence, h = e^{Delta A} h + (e^{Delta A} - 1) / A x, whose state does not grow
    with the number of tokens. Padding is set to 0.

    Parameters
    ----------
    d_model : int
        Features of a token. Each has a state space of its own.
    n_states : int
        How many complex numbers the state of a feature has.
    initializer : str
        A name in `INITIALIZERS`: what W_O is drawn from.

    Attributes
    ----------
    log_step : Parameter, shape (d_model,)
        log Delta, drawn evenly between log .001 and log .1.
    log_decay, frequency : Parameter, shape (d_model, n_states)
        A = -exp(log_decay) + i frequency, at first -1/2 + i pi n (S4D-Lin).
    C : Parameter, shape (2, d_model, n_states)
        Real and imaginary parts.
    skip : Parameter, shape (d_model,)
        D.
    output : Linear
        W_O.
    """

    causal = True

    def __init__(
        self,
        d_model: int,
        n_states: int = N_STATES,
        *,
        initializer: str = "xavier_uniform",
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        d_model = checks.positive("d_model", d_model)
        n_states = checks.positive("n_states", n_states)
        rng, sizes = generators.from_seed(seed), (d_model, n_states)
        self.log_step = Parameter(
            init.draw(init.uniform(math.log(1e-3), math.log(1e-1)), rng, (d_model,), dtype)
        )
        self.log_decay = Parameter(init.draw(init.constant(math.log(0.5)), rng, sizes, dtype))
        self.frequency = Parameter(init.draw(init.harmonics, rng, sizes, dtype))
        self.C = Parameter(init.draw(init.normal(0.5**0.5), rng, (2, *sizes), dtype))
        self.skip = Parameter(init.draw(init.normal(1.0), rng, (d_model,), dtype))
        linear: dict[str, Any] = {"seed": rng, "dtype": dtype}
        linear["init"] = init.INITIALIZERS.make(initializer)
        self.output = Linear(d_model, d_model, **linear)

    @classmethod
    def build(
        cls, settings: MixerSettings, *, seed: Seed, dtype: str, n_states: int = N_STATES
    ) -> Self:
        options = settings.only("d_model", "initializer")
        return cls(**options, n_states=n_states, seed=seed, dtype=dtype)

    def kernel_parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of the kernel in the order in which `functional` takes them."""
        return self.log_step, self.log_decay, self.frequency, self.C

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        x = without_padding(x, context.mask)
        log_step, log_decay, frequency, C = (p.value for p in self.kernel_parameters())
        kernel, kernel_cache = F.state_space_kernel(
            log_step, log_decay, frequency, C, length=x.shape[1]
        )
        s, long_cache = F.causal_convolution(x, kernel)
        a, gelu_cache = F.gelu(s + self.skip.value * x)
        y, output_cache = self.output.forward(a, context)
        y = without_padding(y, context.mask)
        return y, (x, kernel_cache, long_cache, gelu_cache, output_cache, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        x, kernel_cache, long_cache, gelu_cache, output_cache, mask = cache
        da = self.output.backward(without_padding(dy, mask), output_cache, gradients)
        ds = F.gelu_backward(da, gelu_cache)
        # a = gelu(s + skip * x)
        gradients.add(self.skip, (ds * x).sum(axis=(0, 1)))
        dx, dkernel = F.causal_convolution_backward(ds, long_cache)
        dparameters = F.state_space_kernel_backward(dkernel, kernel_cache)
        for parameter, gradient in zip(self.kernel_parameters(), dparameters, strict=True):
            gradients.add(parameter, gradient)
        return without_padding(dx + self.skip.value * ds, mask)

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        return {"real": self.log_decay.shape, "imaginary": self.log_decay.shape}

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        xp, mask, n = array_module(x), context.mask, x.shape[1]
        x = without_padding(x, mask)
        log_step, log_decay, frequency, C = (p.value for p in self.kernel_parameters())
        e, f = F.state_space_step(log_step, log_decay, frequency)
        real, imaginary = state["real"], state["imaginary"]  # [batch, d_model, n_states]
        s = xp.empty_like(x)
        for t in range(n):
            u = x[:, t, :, None]
            after = (
                e[0] * real - e[1] * imaginary + f[0] * u,
                e[0] * imaginary + e[1] * real + f[1] * u,
            )
            if mask is not None:  # padding leaves a state as it is
                kept = mask[:, t, None, None]
                after = xp.where(kept, after[0], real), xp.where(kept, after[1], imaginary)
            real, imaginary = after
            s[:, t] = 2.0 * (C[0] * real - C[1] * imaginary).sum(axis=-1)
        a, _ = F.gelu(s + self.skip.value * x)
        new = {"real": real, "imaginary": imaginary}
        return self.output.forward(a, context)[0], state.extend(n, context, new)

    def explain(self, x: Array, context: Context) -> Array:
        xp, length = array_module(x), x.shape[1]
        log_step, log_decay, frequency, C = (p.value for p in self.kernel_parameters())
        kernel, _ = F.state_space_kernel(log_step, log_decay, frequency, C, length=length)
        k = looking_back(kernel, self.skip.value, length)
        taken = xp.broadcast_to(abs(k).mean(axis=-1), (len(x), 1, length, length))
        return between_kept(taken, context.mask)
