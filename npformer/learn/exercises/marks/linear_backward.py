"""linear_backward: the backward pass of a linear map."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

TWO = draw(6, 3), draw(3, 4, seed=1), draw(4, seed=2)
THREE = draw(2, 5, 3, seed=3), *TWO[1:]

EXERCISE = Exercise(
    name="linear_backward",
    title="dx, dW and db of y = x W + b",
    page="chapters/linear.md",
    hints=(
        "Write y_j of one row as a sum over i. Which y contain x_i? Which contain W_ij? The chain "
        "rule sums over all of them.",
        "The shapes leave little choice: dx has the shape of x and is made of dy and W; dW has the "
        "shape of W and is made of x and dy. db has no axis for the rows, so they are summed.",
        "dx_i = sum_j dy_j W_ij. dW_ij = sum over all rows of x_i dy_j, a product of two matrices "
        "once x and dy are reshaped to one row for each token. db_j = sum over all rows of dy_j.",
    ),
    why="""\
y_j = sum_i x_i W_ij + b_j.
x_i is in every y_j, with the factor W_ij:   dx_i = sum_j dy_j W_ij,   in matrices dx = dy W^T.
W_ij is in y_j alone, with the factor x_i, but in every row:   dW_ij = sum_rows x_i dy_j.
b_j is in y_j alone, with the factor 1, in every row:          db_j = sum_rows dy_j.""",
    mark=Pair(
        "linear",
        "linear_backward",
        ("dx", "dW", "db"),
        (
            Trial("x of shape (6, 3)", TWO, {"the number of rows": 6}),
            Trial("x of shape (2, 5, 3)", THREE, {"the number of rows": 10, "the batch size": 2}),
            Trial("larger arrays", (draw(5, 12, 9), draw(9, 14, seed=1), draw(14, seed=2))),
        ),
    ),
    wrong=(
        Wrong(
            "it is summed over the batch only, not over the rest of the rows",
            "np.sum(drows, axis=0)",
            "dy.sum(axis=0)",
        ),
        Wrong(
            "the bias is the same in every row, so its gradient is a sum over rows, not features",
            "np.sum(drows, axis=0)",
            "drows.sum(axis=1)",
        ),
        Wrong(
            "only one row of the batch takes part",
            "x.reshape(-1, d_in).T @ drows",
            "x.reshape(-1, d_in)[:1].T @ drows[:1]",
        ),
    ),
)
