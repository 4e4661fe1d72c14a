"""dropout_backward: the backward pass of dropout."""

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients
from npformer.layers import Dropout, Sequential, Tanh
from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.invariants import failing
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw


class ByHand(Dropout):
    """`Dropout` computed by a reader's pair."""

    pair: Any

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return y and the cache, by the pair."""
        y, cache = self.pair[0](x, self.rate, context.dropout_generator())
        return y, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Return dx, by the pair."""
        return self.pair[1](dy, cache)


def invariants(answer: Answer) -> list[str]:
    """Check the museum's invariants of a dropout layer, and of one that is used twice."""
    layer = ByHand(0.5)
    layer.pair = answer.function("dropout"), answer.function("dropout_backward")
    chain = Sequential(layer, Tanh(), layer)
    return failing(
        answer, layer, "gradient_of_dropout_at_evaluation", "dropout_does_nothing_at_evaluation"
    ) or failing(answer, chain, "gradient_of_one_dropout_used_twice")


EXERCISE = Exercise(
    name="dropout_backward",
    title="dx of dropout, in training and at evaluation",
    page="chapters/dropout.md",
    hints=(
        "Once they are drawn, the kept entries are constants. What is y as a function of x then?",
        "y is x times a constant for each entry: `scale` where it was kept, and 0 where it was "
        "not. Use what the forward pass drew; do not draw again. At evaluation y = x.",
        "If the cache is None, dx is the gradient that came in. Otherwise dx is dy, with 0 where "
        "`kept` is False, times `scale`.",
    ),
    why="""\
y_i = c_i x_i with the constants c_i = scale where the entry was kept, and 0 where not:
    dx_i = c_i dy_i.
At evaluation y = x, so dx = dy.""",
    mark=Pair(
        "dropout",
        "dropout_backward",
        ("dx",),
        (
            Trial("training", (draw(4, 5), 0.25, np.random.default_rng(3))),
            Trial("evaluation", (draw(4, 5), 0.25, None)),
            Trial("another rate", (draw(2, 3, 4), 0.6, np.random.default_rng(4))),
            Trial("larger arrays", (draw(3, 12, 20), 0.1, np.random.default_rng(5))),
        ),
        invariants,
    ),
    wrong=(
        Wrong(
            "the scaling of the entries that were kept is missing",
            "np.where(kept, dy, 0.0) * scale",
            "np.where(kept, dy, 0.0)",
        ),
        Wrong(
            "entries that were dropped have a gradient",
            "np.where(kept, dy, 0.0) * scale",
            "dy * scale",
        ),
        Wrong(
            "it is the gradient that came in: entries that were dropped have none, and those that "
            "were kept were scaled",
            "np.where(kept, dy, 0.0) * scale",
            "dy * 1.0",
        ),
        Wrong(
            "it is scaled the wrong way round: y is larger than x, not smaller",
            "np.where(kept, dy, 0.0) * scale",
            "np.where(kept, dy, 0.0) / scale",
        ),
        Wrong(
            "the entries that were kept have no gradient, and those that were dropped have one",
            "np.where(kept, dy, 0.0)",
            "np.where(kept, 0.0, dy)",
        ),
    ),
)
