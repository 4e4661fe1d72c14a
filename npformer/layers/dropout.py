"""Dropout: entries, or whole tokens, set to 0 at random while training."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer, checks
from npformer.core.support.explained_errors import refuse_unknown_arguments


class Dropout(Layer):
    """y = x m / (1 - rate) while training, y = x at evaluation.

    m is a random mask of ones and zeros, drawn with the generator of the context.

    Parameters
    ----------
    rate : float
        Probability, from 0 up to 1, that an entry is dropped.
    """

    @refuse_unknown_arguments
    def __init__(self, rate: float) -> None:
        self.rate = checks.rate("rate", rate)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self.rate == 0.0:
            return x, None
        return F.dropout(x, self.rate, context.dropout_generator())

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return dy if cache is None else F.dropout_backward(dy, cache)


class TokenDropout(Dropout):
    """y_t = x_t m_t while training, with m_t 1 or 0 for each token; y = x at evaluation.

    `rate` is the probability that a token is dropped; see `functional.token_dropout`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        generator = context.dropout_generator() if self.rate > 0.0 else None
        return F.token_dropout(x, self.rate, generator)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.token_dropout_backward(dy, cache)
