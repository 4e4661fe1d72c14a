"""layer_norm_backward: the backward pass of layer norm."""

from typing import Any

from npformer.core import Array, Context, Gradients
from npformer.layers import LayerNorm
from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.invariants import failing
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw


def invariants(answer: Answer) -> list[str]:
    """Check the museum's invariants of layer norm."""
    pair = answer.function("layer_norm"), answer.function("layer_norm_backward")
    norm = ByHand(6, dtype="float64")
    norm.pair = pair
    return failing(answer, norm, "gradient_of_layer_norm", "a_constant_row_is_finite")


class ByHand(LayerNorm):
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


EXERCISE = Exercise(
    name="layer_norm_backward",
    title="dx, dgamma and dbeta of layer norm",
    page="chapters/layer_norm.md",
    hints=(
        "Begin with y = gamma n + beta: dgamma, dbeta, and g, the gradient with respect to n. Then "
        "take one row, and find how n_j depends on x_i through the mean and the variance.",
        "With s = sqrt(var + eps), the derivative of the mean by x_i is 1 / d, and that of s is "
        "n_i / d. The quotient rule gives the derivative of n_j by x_i: "
        "([i = j] - 1 / d - n_i n_j / d) / s.",
        "Multiply this by g_j and sum over j. Three terms are left, all divided by s: g_i, minus "
        "the mean of g over the row, minus n_i times the mean of g n over the row.",
    ),
    why="""\
With s = sqrt(var + eps) and n = (x - mean) / s, in a row of d features:
    the derivative of mean by x_i is 1 / d
    the derivative of s by x_i is (1 / 2s) (2 / d) (x_i - mean) = n_i / d
    the derivative of n_j by x_i is ([i = j] - 1 / d) / s - (x_j - mean) / s^2 n_i / d
                                  = ([i = j] - 1 / d - n_i n_j / d) / s.
y = gamma n + beta, so g = dy gamma is the gradient with respect to n. Summed over j:
    dx_i = (g_i - mean(g) - n_i mean(g n)) / s.
gamma and beta are the same in every row: their gradients are sums over the rows.""",
    mark=Pair(
        "layer_norm",
        "layer_norm_backward",
        ("dx", "dgamma", "dbeta"),
        (
            Trial(
                "x of shape (4, 5)",
                (draw(4, 5), 1.5 + draw(5, seed=1), draw(5, seed=2)),
                {"the number of rows": 4, "the number of features": 5},
            ),
            Trial(
                "x of shape (2, 3, 4)",
                (draw(2, 3, 4), 1.5 + draw(4, seed=1), draw(4, seed=2)),
                {"the number of rows": 6, "the batch size": 2},
            ),
            Trial("larger arrays", (draw(3, 12, 20), 1.5 + draw(20, seed=1), draw(20, seed=2))),
        ),
        invariants,
    ),
    wrong=(
        Wrong(
            "gamma is missing: the normalised row is multiplied by it on its way to y",
            "g = dy * gamma",
            "g = dy",
        ),
        Wrong("the way through the mean is missing", "g - along_mean - ", "g - "),
        Wrong("the way through the variance is missing", " - normalised * along_row", ""),
        Wrong(
            "mean and variance are treated as constants: x reaches y through both of them too",
            "(g - along_mean - normalised * along_row)",
            "g",
        ),
        Wrong(
            "the division by the standard deviation is missing",
            ") * inverse_std\n    return dx",
            ")\n    return dx",
        ),
        Wrong(
            "it has sums where means belong",
            "g.mean(axis=-1, keepdims=True)\n    along_row = (g * normalised).mean(",
            "g.sum(axis=-1, keepdims=True)\n    along_row = (g * normalised).sum(",
        ),
        Wrong(
            "on the way through the mean, a sum over the row stands where a mean belongs",
            "g.mean(axis=-1",
            "g.sum(axis=-1",
        ),
        Wrong(
            "on the way through the variance, a sum over the row stands where a mean belongs",
            "(g * normalised).mean(",
            "(g * normalised).sum(",
        ),
        Wrong(
            "it is that of beta: gamma multiplies the normalised row",
            "(dy * normalised).reshape",
            "dy.reshape",
        ),
        Wrong(
            "it is summed over the batch only, not over the rest of the rows",
            "(dy * normalised).reshape(-1, d).sum(axis=0)",
            "(dy * normalised).sum(axis=0)",
        ),
        Wrong(
            "it is summed over the batch only, not over the rest of the rows",
            "dbeta = dy.reshape(-1, d).sum(axis=0)",
            "dbeta = dy.sum(axis=0)",
        ),
    ),
)
