"""The Dense Synthesizer, whole and factorized (Tay et al., 2020, arXiv 2005.00743)."""

import math
from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Parameter, initializers
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers.state import State
from npformer.mixers.averaging import Scores, Synthesizer
from npformer.mixers.mixer import MixerSettings


@drop_class_from_names
class DenseScores(Scores):
    """S_i = relu(x W1^i + b1^i) W2^i + b2^i: each token computes its own row of scores.

    With one head this is the equation of the paper. With h heads, each takes d_model / h columns of
    W1, as the heads of attention do with the query projection, and has its own W2. The authors'
    code does the same. Sequences shorter than max_len use the first columns of W2.

    Attributes
    ----------
    W1, b1 : Parameter, shapes (d_model, d_model) and (d_model,)
    W2, b2 : Parameter, shapes (n_heads, d_model / n_heads, max_len) and (n_heads, max_len)
    """

    pair: tuple[Any, Any] = (F.dense_scores, F.dense_scores_backward)

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        self.W1, self.b1, self.W2, self.b2 = _network(settings, settings.max_len, rng, dtype)

    def score_parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters in the order in which `functional` takes them."""
        return self.W1, self.b1, self.W2, self.b2

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        return self._rows(x, self.length_of(x))  # type: ignore[no-any-return]

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        return self._rows(x, state.longest)[0]

    def _rows(self, x: Array, length: int) -> Any:
        forward, _ = self.pair
        return forward(x, *(parameter.value for parameter in self.score_parameters()), length)

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> Array:
        _, backward = self.pair
        dx, *dparameters = backward(dscores, cache)
        for parameter, gradient in zip(self.score_parameters(), dparameters, strict=True):
            gradients.add(parameter, gradient)
        return dx


@drop_class_from_names
class FactorizedDenseScores(DenseScores):
    """S_i = F(x_i) tiled times G(x_i) repeated: two short rows make one of max_len entries.

    F gives a numbers and G gives b numbers for each token. a and b are about sqrt(max_len).

    Attributes
    ----------
    W1, b1, W2, b2 : Parameter
        The parameters of F, shaped as in `DenseScores` with a instead of max_len.
    V1, c1, V2, c2 : Parameter
        The parameters of G, with b instead of max_len.
    """

    pair = (F.factorized_dense_scores, F.factorized_dense_scores_backward)

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        a = math.isqrt(settings.max_len - 1) + 1  # the square root of max_len, rounded up
        b = -(-settings.max_len // a)
        self.W1, self.b1, self.W2, self.b2 = _network(settings, a, rng, dtype)
        self.V1, self.c1, self.V2, self.c2 = _network(settings, b, rng, dtype)

    def score_parameters(self) -> tuple[Parameter, ...]:
        return *super().score_parameters(), self.V1, self.c1, self.V2, self.c2


class DenseSynthesizer(Synthesizer, DenseScores):
    """head_i = softmax(relu(x W1^i + b1^i) W2^i + b2^i) x W_V^i; see `Synthesizer`."""


class FactorizedDenseSynthesizer(Synthesizer, FactorizedDenseScores):
    """head_i = softmax(tiled F^i(x) * repeated G^i(x)) x W_V^i; see `Synthesizer`.

    For long sequences this takes fewer parameters than the Dense Synthesizer.
    """


def _network(settings: MixerSettings, columns: int, rng: Any, dtype: str) -> list[Parameter]:
    """Return W1, b1, W2 and b2, for rows of `columns` scores."""
    d_model = settings.d_model
    n_heads = settings.n_heads
    zeros = initializers.zeros
    init = initializers.INITIALIZERS.make(settings.initializer)
    draws: list[tuple[Any, tuple[int, ...]]] = [
        (init, (d_model, d_model)),
        (zeros, (d_model,)),
        (initializers.per_head(init), (n_heads, d_model // n_heads, columns)),
        (zeros, (n_heads, columns)),
    ]
    return [
        Parameter(initializers.draw(initializer, rng, shape, dtype)) for initializer, shape in draws
    ]
