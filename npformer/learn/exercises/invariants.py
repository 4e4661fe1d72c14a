"""The museum's invariants, applied to what a reader wrote."""

from typing import Any

from npformer.core import Array, Context, Gradients
from npformer.layers import Dropout, LayerNorm, Sequential, Tanh
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.optim import Adam
from npformer.optim.optimizer import Buffer


def broken_invariants(answer: Answer, thing: Any, *names: str) -> list[str]:
    """Return sentences on which of these invariants a thing breaks, without saying where."""
    problems = []
    for name in names:
        from npformer.learn.museum import INVARIANTS  # when needed

        try:
            answer.call(INVARIANTS[name], thing)
        except Stuck as stuck:
            says = " ".join((INVARIANTS[name].__doc__ or "").split())
            broken = isinstance(stuck.__cause__, AssertionError)
            problems.append(f"{name} fails: {says}" if broken else f"{name}: {stuck}")
    return problems


def layer_norm_by(pair: Any) -> LayerNorm:
    """Return a layer norm that is computed by a reader's pair."""

    class LayerNormByHand(LayerNorm):
        def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
            y, cache = pair[0](x, self.gamma.value, self.beta.value, self.eps)
            return y, cache

        def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
            dx, dgamma, dbeta = pair[1](dy, cache)
            gradients.add(self.gamma, dgamma)
            gradients.add(self.beta, dbeta)
            return dx

    return LayerNormByHand(6, dtype="float64")


def two_dropouts_by(pair: Any) -> Sequential:
    """Return a chain that uses one dropout layer twice, which is computed by a reader's pair."""

    class DropoutByHand(Dropout):
        def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
            y, cache = pair[0](x, self.rate, context.dropout_generator())
            return y, cache

        def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
            return pair[1](dy, cache)

    layer = DropoutByHand(0.5)
    return Sequential(layer, Tanh(), layer)


def adam_by(update: Any) -> type[Adam]:
    """Return an `Adam` whose steps are made by a reader's update."""

    class AdamByHand(Adam):
        def _update(self, buffers: list[Buffer], lr: float) -> None:
            for name, theta, g in buffers:
                m, v = self._moments.of(name, theta)
                new = update(theta, g, m, v, self.steps, lr, *self.betas, self.eps)
                theta[...], m[...], v[...] = new

    return AdamByHand
