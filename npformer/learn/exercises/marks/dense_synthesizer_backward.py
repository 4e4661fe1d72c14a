"""dense_synthesizer_backward: the backward pass of the Dense Synthesizer."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

SIZES = draw(3, 4, seed=2), draw(4, seed=3), draw(4, 5, seed=4), draw(5, seed=5)  # max_len 5
LARGE = draw(6, 9, seed=2), draw(9, seed=3), draw(9, 24, seed=4), draw(24, seed=5)

EXERCISE = Exercise(
    name="dense_synthesizer_backward",
    title="six gradients of the Dense Synthesizer",
    page="chapters/synthesizers.md",
    hints=(
        "Five steps, backwards: the average, the softmax, a linear map, a ReLU, a linear map. You "
        "have done each of them before.",
        "Only the first `length` columns of W2 and b2 were used. Their gradients still have the "
        "full shape; the other columns changed nothing.",
        "dvalue and the scores' gradient as in attention_backward. Then zeros for dW2 and db2 "
        "whose first `length` columns are filled as in linear_backward; back through the columns "
        "of W2 that were used; 0 where `hidden` is 0; then linear_backward for W1, b1 and x.",
    ),
    why="""\
y = A V:                       dV = A^T dy, dA = dy V^T.
A = softmax(S):                dS = A (dA - the row sum of dA A).
S = hidden W2[:, :L] + b2[:L]: dW2[:, :L] = hidden^T dS, db2[:L] = the sum of dS, and 0 in the other
                               columns, which were not used; dhidden = dS W2[:, :L]^T.
hidden = max(0, before):       dbefore = dhidden where hidden > 0, else 0.
before = x W1 + b1:            dx = dbefore W1^T, dW1 = x^T dbefore, db1 = the sum of dbefore.""",
    mark=Pair(
        "dense_synthesizer",
        "dense_synthesizer_backward",
        ("dx", "dvalue", "dW1", "db1", "dW2", "db2"),
        (
            Trial(
                "a sequence of max_len tokens",
                (draw(2, 5, 3), draw(2, 5, 2, seed=1), *SIZES),
                {"the batch size": 2, "the number of rows": 10},
            ),
            Trial("a shorter sequence", (draw(3, 4, 3), draw(3, 4, 2, seed=1), *SIZES)),
            Trial("larger arrays", (draw(2, 20, 6), draw(2, 20, 5, seed=1), *LARGE)),
        ),
    ),
    wrong=(
        Wrong("the ReLU is left out", "dhidden * (hidden > 0.0)", "dhidden"),
        Wrong(
            "only the columns that were used are there; the gradient has the shape of the whole "
            "table",
            "dW2[:, :length] = np",
            "dW2 = np",
        ),
        Wrong(
            "only the entries that were used are there; the gradient has the shape of the whole "
            "row",
            "db2[:length] = dscores",
            "db2 = dscores",
        ),
        Wrong(
            "the softmax is left out: the gradient of the weights is not that of the scores",
            "dscores = weights * (dweights - inner)",
            "dscores = dweights",
        ),
        Wrong(
            "in the softmax the dependence through the sum of exponentials is missing",
            "dscores = weights * (dweights - inner)",
            "dscores = weights * dweights",
        ),
        Wrong(
            "the weights are used untransposed: a value gets its gradient from all tokens that "
            "looked at it",
            "weights.swapaxes(-1, -2) @ dy",
            "weights @ dy",
        ),
        Wrong(
            "the backward pass of the softmax sums over the tokens that look; it runs over those "
            "that are looked at",
            "(dweights * weights).sum(axis=-1",
            "(dweights * weights).sum(axis=-2",
        ),
    ),
)
