"""attention_backward: the backward pass of attention with a mask."""

import math

import numpy as np

from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.invariants import failing
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

MASK = np.array([[[True, True, False, True, True]] * 4, [[True, False, False, True, False]] * 4])
MASK[1, 2] = False  # a query that may see no key


def invariants(answer: Answer) -> list[str]:
    """Check the museum's invariants of attention."""
    pair = answer.function("attention"), answer.function("attention_backward")
    return failing(answer, pair, "queries_ask_and_keys_answer")


EXERCISE = Exercise(
    name="attention_backward",
    title="dquery, dkey and dvalue of attention with a mask",
    page="chapters/attention.md",
    hints=(
        "Go backwards through three steps: the average y = A V, the softmax, the scores. You have "
        "done each of them before.",
        "y = A V is a product of two matrices: it gives dvalue, and the gradient of the weights. "
        "Then softmax_backward of exercise 5, and scores_backward of exercise 11. Where a weight "
        "is 0, the softmax passes on 0: so the mask needs no line of its own.",
        "dvalue is A transposed times dy, and dA is dy times V transposed. dS is A times (dA minus "
        "the row sums of dA A). dquery is dS K, dkey is dS transposed times Q, both times scale.",
    ),
    why="""\
y = A V, a product of two matrices: dV = A^T dy and dA = dy V^T.
A = softmax(S) in each row:         dS = A (dA - the row sum of dA A).
S = scale Q K^T:                    dQ = scale dS K and dK = scale dS^T Q.
Where the mask is False A is 0, and so is dS: such a key gets nothing, whatever it holds.""",
    mark=Pair(
        "attention",
        "attention_backward",
        ("dquery", "dkey", "dvalue"),
        (
            Trial(
                "a single head",
                (draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2)),
                {"sqrt(d_head)": math.sqrt(3), "d_head": 3},
            ),
            Trial(
                "a batch with a mask",
                (draw(2, 4, 3), draw(2, 5, 3, seed=1), draw(2, 5, 2, seed=2), MASK),
            ),
            Trial(
                "batch and heads",
                (draw(2, 2, 3, 4), draw(2, 2, 3, 4, seed=1), draw(2, 2, 3, 4, seed=2)),
            ),
            Trial("larger arrays", tuple(draw(2, 3, 12, 8, seed=seed) for seed in range(3))),
        ),
        invariants,
    ),
    wrong=(
        Wrong(
            "the softmax is left out: the gradient of the weights is not that of the scores",
            "dscores = weights * (dweights - inner)",
            "dscores = dweights",
        ),
        Wrong(
            "in the softmax only the dependence of each weight on its own score is there",
            "dscores = weights * (dweights - inner)",
            "dscores = weights * dweights * (1.0 - weights)",
        ),
        Wrong(
            "in the softmax the dependence through the sum of exponentials is missing",
            "dscores = weights * (dweights - inner)",
            "dscores = weights * dweights",
        ),
        Wrong(
            "the backward pass of the softmax sums over the queries; each query has a softmax of "
            "its own, over the keys",
            "(dweights * weights).sum(axis=-1",
            "(dweights * weights).sum(axis=-2",
        ),
        Wrong(
            "the factor of the weights in front of the softmax's bracket is missing",
            "dscores = weights * (dweights - inner)",
            "dscores = dweights - inner",
        ),
        Wrong(
            "the scale is missing: the scores contain it once",
            "dscores @ key * scale",
            "dscores @ key",
        ),
        Wrong("the scale is missing: the scores contain it once", "@ query * scale", "@ query"),
        Wrong(
            "it is divided by sqrt(d_head) twice",
            "weights * (dweights - inner)",
            "weights * (dweights - inner) * scale",
        ),
    ),
)
