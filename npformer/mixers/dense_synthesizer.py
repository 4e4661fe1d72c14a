"""The Dense Synthesizer, whole and factorized (Tay et al., 2020, arXiv 2005.00743)."""

import math
from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Parameter, Seed, checks, initializers
from npformer.core.state import State
from npformer.functional.heads import check_heads
from npformer.mixers.averaging import Scores, Synthesizer


class DenseScores(Scores):
    """S_i = relu(x W1^i + b1^i) W2^i + b2^i: each token computes its own row of scores.

    With one head this is the equation of the paper. With h heads, each takes d_model / h columns of
    W1, as the heads of attention do with the query projection, and has a W2 of its own. The code of
    the authors does the same. Sequences shorter than max_len use the first columns of W2.

    Attributes
    ----------
    W1, b1 : Parameter, shapes (d_model, d_model) and (d_model,)
    W2, b2 : Parameter, shapes (n_heads, d_model / n_heads, max_len) and (n_heads, max_len)
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        max_len: int = 128,
        *,
        initializer: str = "xavier_uniform",
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        drawn = initializer, initializers.generator(seed), dtype
        self.W1, self.b1, self.W2, self.b2 = _network(d_model, n_heads, max_len, *drawn)

    def in_order(self) -> tuple[Parameter, ...]:
        """Return the parameters in the order in which `functional` takes them."""
        return self.W1, self.b1, self.W2, self.b2

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        W1, b1, W2, b2 = (parameter.value for parameter in self.in_order())
        return F.dense_scores(x, W1, b1, W2, b2, self.length_of(x))

    def rows(self, x: Array, state: State, context: Context) -> Array:
        W1, b1, W2, b2 = (parameter.value for parameter in self.in_order())
        return F.dense_scores(x, W1, b1, W2, b2, state.longest)[0]

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, *dparameters = F.dense_scores_backward(dy, cache)
        for parameter, gradient in zip(self.in_order(), dparameters, strict=True):
            gradients.add(parameter, gradient)
        return dx


class FactorizedDenseScores(Scores):
    """S_i = F(x_i) tiled times G(x_i) repeated: two short rows make one of max_len entries.

    F gives a numbers and G gives b numbers for each token. a and b are about sqrt(max_len).

    Attributes
    ----------
    W1, b1, W2, b2 : Parameter
        The parameters of F, shaped as in `DenseScores` with a instead of max_len.
    V1, c1, V2, c2 : Parameter
        Those of G, with b instead of max_len.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        max_len: int = 128,
        *,
        initializer: str = "xavier_uniform",
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        max_len = checks.positive("max_len", max_len)  # NumPy's small integers would overflow
        drawn = initializer, initializers.generator(seed), dtype
        a = math.isqrt(max_len - 1) + 1  # the square root of max_len, rounded up
        b = -(-max_len // a)
        self.W1, self.b1, self.W2, self.b2 = _network(d_model, n_heads, a, *drawn)
        self.V1, self.c1, self.V2, self.c2 = _network(d_model, n_heads, b, *drawn)

    def in_order(self) -> tuple[Parameter, ...]:
        """Return the parameters in the order in which `functional` takes them."""
        return self.W1, self.b1, self.W2, self.b2, self.V1, self.c1, self.V2, self.c2

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        W1, b1, W2, b2, V1, c1, V2, c2 = (parameter.value for parameter in self.in_order())
        return F.factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2, self.length_of(x))

    def rows(self, x: Array, state: State, context: Context) -> Array:
        W1, b1, W2, b2, V1, c1, V2, c2 = (parameter.value for parameter in self.in_order())
        return F.factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2, state.longest)[0]

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, *dparameters = F.factorized_dense_scores_backward(dy, cache)
        for parameter, gradient in zip(self.in_order(), dparameters, strict=True):
            gradients.add(parameter, gradient)
        return dx


class DenseSynthesizer(Synthesizer):
    """head_i = softmax(relu(x W1^i + b1^i) W2^i + b2^i) x W_V^i; see `Synthesizer`."""

    scores_type = DenseScores


class FactorizedDenseSynthesizer(Synthesizer):
    """head_i = softmax(tiled F^i(x) * repeated G^i(x)) x W_V^i; see `Synthesizer`.

    For long sequences this takes fewer parameters than the Dense Synthesizer.
    """

    scores_type = FactorizedDenseScores


def _network(
    d_model: int, n_heads: int, columns: int, initializer: str, rng: Any, dtype: str
) -> tuple[Parameter, Parameter, Parameter, Parameter]:
    """Return W1, b1, W2 and b2, for rows of `columns` scores."""
    check_heads(d_model, n_heads)
    checks.positive("max_len", columns)
    draw, zeros = initializers.draw, initializers.zeros
    init = initializers.INITIALIZERS.make(initializer)
    each_head = initializers.per_head(init)
    return (
        Parameter(draw(init, rng, (d_model, d_model), dtype)),
        Parameter(draw(zeros, rng, (d_model,), dtype)),
        Parameter(draw(each_head, rng, (n_heads, d_model // n_heads, columns), dtype)),
        Parameter(draw(zeros, rng, (n_heads, columns), dtype)),
    )
