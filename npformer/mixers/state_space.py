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
from npformer.functional.sums import sum_along
from npformer.layers import Linear
from npformer.layers.pooling import without_padding
from npformer.layers.state import State, StateShapes
from npformer.mixers.mixer import Mixer, MixerSettings, convolution_matrices, mask_weights

N_STATES = 16
"""Complex numbers in the state of each feature."""


class StateSpace(Mixer):
    """y = gelu(k * x + D x) W_O, with the kernel k of a diagonal state space: `state_space_kernel`.

    In training the convolution is computed by a Fourier transform, for whole sequences. Token by
    token it is a recurrence, h = e^{Delta A} h + (e^{Delta A} - 1) / A x, whose state does not grow
    with the number of tokens. Padding is set to 0.

    Parameters
    ----------
    d_model : int
        Features of a token. Each has its own state space.
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
        rng = generators.from_seed(seed)
        shape = d_model, n_states
        init_step = init.uniform(math.log(1e-3), math.log(1e-1))
        init_decay = init.constant(math.log(0.5))
        self.log_step = Parameter(init.draw(init_step, rng, (d_model,), dtype))
        self.log_decay = Parameter(init.draw(init_decay, rng, shape, dtype))
        self.frequency = Parameter(init.draw(init.harmonics, rng, shape, dtype))
        self.C = Parameter(init.draw(init.normal(0.5**0.5), rng, (2, *shape), dtype))
        self.skip = Parameter(init.draw(init.normal(1.0), rng, (d_model,), dtype))
        init_output = init.INITIALIZERS.make(initializer)
        self.output = Linear(d_model, d_model, seed=rng, dtype=dtype, init=init_output)

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
        gradients.add(self.skip, sum_along((ds * x).reshape(-1, len(self.skip.value)), axis=0))
        dx, dkernel = F.causal_convolution_backward(ds, long_cache)
        dparameters = F.state_space_kernel_backward(dkernel, kernel_cache)
        for parameter, gradient in zip(self.kernel_parameters(), dparameters, strict=True):
            gradients.add(parameter, gradient)
        return without_padding(dx + self.skip.value * ds, mask)

    def state_shapes(self, length: int, d_model: int) -> StateShapes:
        return {"real": self.log_decay.shape, "imaginary": self.log_decay.shape}

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        xp = array_module(x)
        mask = context.mask
        n = x.shape[1]
        x = without_padding(x, mask)
        log_step, log_decay, frequency, C = (p.value for p in self.kernel_parameters())
        e, f = F.state_space_step(log_step, log_decay, frequency)
        real = state["real"]  # [batch, d_model, n_states]
        imaginary = state["imaginary"]
        s = xp.empty_like(x)
        for t in range(n):
            u = x[:, t, :, None]
            new_real = e[0] * real - e[1] * imaginary + f[0] * u
            new_imaginary = e[0] * imaginary + e[1] * real + f[1] * u
            if mask is not None:  # padding leaves a state as it is
                is_token = mask[:, t, None, None]
                new_real = xp.where(is_token, new_real, real)
                new_imaginary = xp.where(is_token, new_imaginary, imaginary)
            real = new_real
            imaginary = new_imaginary
            s[:, t] = 2.0 * (C[0] * real - C[1] * imaginary).sum(axis=-1)
        a, _ = F.gelu(s + self.skip.value * x)
        y, _ = self.output.forward(a, context)
        return y, state.extend(n, context, instead={"real": real, "imaginary": imaginary})

    def explain(self, x: Array, context: Context) -> Array:
        xp = array_module(x)
        length = x.shape[1]
        log_step, log_decay, frequency, C = (p.value for p in self.kernel_parameters())
        kernel, _ = F.state_space_kernel(log_step, log_decay, frequency, C, length=length)
        matrices = convolution_matrices(kernel, self.skip.value, length)
        weights = abs(matrices).mean(axis=-1)
        weights = xp.broadcast_to(weights, (len(x), 1, length, length))
        return mask_weights(weights, context.mask)
