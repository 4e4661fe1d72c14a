"""The Dense Synthesizer, whole and factorized, as mixers (Tay et al., 2020, arXiv 2005.00743)."""

from __future__ import annotations

import math
from typing import Any, Self

from npformer import functional as F
from npformer.core import (
    INITIALIZERS,
    Array,
    Context,
    Gradients,
    Parameter,
    Seed,
    checks,
    initializers,
)
from npformer.mixers.averaging import Scores, Synthesizer
from npformer.mixers.mixer import MixerSettings, check_heads


class DenseScores(Scores):
    """S_i = relu(x W1^i + b1^i) W2^i + b2^i: each token writes its own row.

    One head is the paper's equation, W1 (d_model, d_model) and W2 (d_model, max_len). With h heads
    the columns of W1 are shared out among them, as attention shares out its query projection (and
    as the authors' code does), and each has its own W2 of shape (d_model / h, max_len).

    Parameters
    ----------
    d_model : int
        Features of a token.
    n_heads : int
        Heads; each has a map of its own.
    max_len : int
        Columns of W2: the longest sequence. Shorter ones use the first columns.
    initializer : str
        A name in `INITIALIZERS`: what the matrices are drawn from.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    W1 : Parameter, shape (d_model, d_model)
    b1 : Parameter, shape (d_model,)
    W2 : Parameter, shape (n_heads, d_model / n_heads, max_len)
    b2 : Parameter, shape (n_heads, max_len)
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        max_len: int = 128,
        *,
        initializer: str = "xavier_uniform",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        drawn = initializer, seed, dtype
        self.W1, self.b1, self.W2, self.b2 = _map(d_model, n_heads, max_len, *drawn)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        sizes = settings.d_model, settings.n_heads, settings.max_len
        return cls(*sizes, initializer=settings.initializer, seed=seed, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        maps = (self.W1.value, self.b1.value, self.W2.value, self.b2.value)
        return F.dense_scores(x, *maps, x.shape[1])

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, *dmaps = F.dense_scores_backward(dy, cache)
        for parameter, gradient in zip((self.W1, self.b1, self.W2, self.b2), dmaps, strict=True):
            gradients.add(parameter, gradient)
        return dx


class FactorizedDenseScores(Scores):
    """S_i = F(x_i) tiled times G(x_i) repeated: two short rows make one of max_len.

    Parameters
    ----------
    d_model, n_heads, max_len, initializer, seed, dtype
        As in `DenseScores`. F writes a numbers and G writes b, both about the root of max_len.

    Attributes
    ----------
    W1, b1, W2, b2 : Parameter
        F, as in `DenseScores`, with a columns.
    V1, c1, V2, c2 : Parameter
        G, alike, with b columns.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        max_len: int = 128,
        *,
        initializer: str = "xavier_uniform",
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.positive("max_len", max_len)
        drawn = initializer, initializers.generator(seed), dtype
        a = math.isqrt(max_len - 1) + 1  # the root of max_len, rounded up
        b = -(-max_len // a)
        self.W1, self.b1, self.W2, self.b2 = _map(d_model, n_heads, a, *drawn)
        self.V1, self.c1, self.V2, self.c2 = _map(d_model, n_heads, b, *drawn)

    def _parameters(self) -> tuple[Parameter, ...]:
        return self.W1, self.b1, self.W2, self.b2, self.V1, self.c1, self.V2, self.c2

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        sizes = settings.d_model, settings.n_heads, settings.max_len
        return cls(*sizes, initializer=settings.initializer, seed=seed, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        W1, b1, W2, b2, V1, c1, V2, c2 = (parameter.value for parameter in self._parameters())
        return F.factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2, x.shape[1])

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, *dmaps = F.factorized_dense_scores_backward(dy, cache)
        for parameter, gradient in zip(self._parameters(), dmaps, strict=True):
            gradients.add(parameter, gradient)
        return dx


class DenseSynthesizer(Synthesizer):
    """head_i = softmax(relu(x W1^i + b1^i) W2^i + b2^i) x W_V^i; see `Synthesizer`."""

    scores_type = DenseScores


class FactorizedDenseSynthesizer(Synthesizer):
    """head_i = softmax(tiled F^i(x) * repeated G^i(x)) x W_V^i; see `Synthesizer`.

    Fewer parameters than the Dense Synthesizer for long sequences.
    """

    scores_type = FactorizedDenseScores


def _map(
    d_model: int, n_heads: int, columns: int, initializer: str, seed: Seed, dtype: str
) -> tuple[Parameter, Parameter, Parameter, Parameter]:
    """Return W1, b1, W2, b2 of a map from tokens to rows of scores."""
    check_heads(d_model, n_heads)
    checks.positive("max_len", columns)
    rng, init = initializers.generator(seed), INITIALIZERS.make(initializer)
    zeros = initializers.zeros
    shape = (n_heads, d_model // n_heads, columns)
    return (
        Parameter(initializers.draw(init, rng, (d_model, d_model), dtype)),
        Parameter(initializers.draw(zeros, rng, (d_model,), dtype)),
        Parameter(initializers.draw(initializers.per_head(init), rng, shape, dtype)),
        Parameter(initializers.draw(zeros, rng, (n_heads, columns), dtype)),
    )
