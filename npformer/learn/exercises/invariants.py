"""The museum's invariants, applied to what a reader wrote."""

from typing import Any

from npformer.core import Array, Context, Gradients
from npformer.layers import Dropout, LayerNorm, Sequential, Tanh
from npformer.learn.exercises.answer import Answer, Stuck


def failing_invariants(answer: Answer, thing: Any, *names: str) -> list[str]:
    """Return, in words, which of these invariants a thing breaks, without saying where."""
    from npformer.learn.museum import INVARIANTS

    found = []
    for name in names:
        try:
            answer.call(INVARIANTS[name], thing)
        except Stuck as stuck:
            says = " ".join((INVARIANTS[name].__doc__ or "").split())
            broken = isinstance(stuck.__cause__, AssertionError)
            found.append(f"{name} fails: {says}" if broken else f"{name}: {stuck}")
    return found


class LayerNormByHand(LayerNorm):
    """`LayerNorm` computed by a reader's pair."""

    pair: Any

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return y and the cache, by the pair."""
        y, cache = self.pair[0](x, self.gamma.value, self.beta.value, self.eps)
        return y, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Add the gradients of gamma and beta, and return dx, by the pair."""
        dx, dgamma, dbeta = self.pair[1](dy, cache)
        gradients.add(self.gamma, dgamma)
        gradients.add(self.beta, dbeta)
        return dx


class DropoutByHand(Dropout):
    """`Dropout` computed by a reader's pair."""

    pair: Any

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return y and the cache, by the pair."""
        y, cache = self.pair[0](x, self.rate, context.dropout_generator())
        return y, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Return dx, by the pair."""
        return self.pair[1](dy, cache)


def softmax(answer: Answer, pair: Any) -> list[str]:
    """Check the invariants of softmax."""
    return failing_invariants(
        answer, pair, "gradient_of_softmax", "softmax_sums_to_1_over_the_last_axis"
    )


def attention(answer: Answer, pair: Any) -> list[str]:
    """Check the invariant of attention."""
    return failing_invariants(answer, pair, "queries_ask_and_keys_answer")


def layer_norm(answer: Answer, pair: Any) -> list[str]:
    """Check the invariants of layer norm."""
    norm = LayerNormByHand(6, dtype="float64")
    norm.pair = pair
    return failing_invariants(answer, norm, "gradient_of_layer_norm", "a_constant_row_is_finite")


def dropout(answer: Answer, pair: Any) -> list[str]:
    """Check the invariants of a dropout layer, and of one that is used twice."""
    layer = DropoutByHand(0.5)
    layer.pair = pair
    chain = Sequential(layer, Tanh(), layer)
    return failing_invariants(
        answer, layer, "gradient_of_dropout_at_evaluation", "dropout_does_nothing_at_evaluation"
    ) or failing_invariants(answer, chain, "gradient_of_one_dropout_used_twice")
