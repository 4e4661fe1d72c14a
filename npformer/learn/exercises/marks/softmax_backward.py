"""softmax_backward: the backward pass of softmax."""

from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.invariants import failing
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw


def invariants(answer: Answer) -> list[str]:
    """Check the museum's invariants of softmax."""
    pair = answer.function("softmax"), answer.function("softmax_backward")
    return failing(answer, pair, "gradient_of_softmax", "softmax_sums_to_1_over_the_last_axis")


EXERCISE = Exercise(
    name="softmax_backward",
    title="dx of softmax over the last axis",
    page="chapters/softmax.md",
    hints=(
        "Take one row. Write the derivative of y_j with respect to x_i by the quotient rule, for "
        "i = j and for another j. Both can be written with y alone.",
        "The derivative is y_j ([i = j] - y_i). Multiply it by dy_j and sum over j: of the two "
        "terms, one leaves a single j, and the other a sum that is the same for every i.",
        "dx_i is y_i times a bracket: dy_i minus the sum over j of dy_j y_j. Sum over the last "
        "axis, with keepdims=True.",
    ),
    why="""\
In a row, y_j = exp(x_j) / Z with Z = sum_k exp(x_k), and every x_i is in Z. By the quotient rule
    the derivative of y_j by x_i = [i = j] exp(x_j) / Z - exp(x_j) exp(x_i) / Z^2
                                 = y_j ([i = j] - y_i).
By the chain rule dx_i = sum_j dy_j y_j ([i = j] - y_i) = y_i dy_i - y_i sum_j dy_j y_j.""",
    mark=Pair(
        "softmax",
        "softmax_backward",
        ("dx",),
        (
            Trial("a matrix", (draw(4, 5),), {"the number of rows": 4, "the number of columns": 5}),
            Trial("three axes", (draw(2, 3, 4),)),
            Trial("a single row", (draw(6),)),
            Trial("larger arrays", (draw(3, 12, 20),)),
        ),
        invariants,
    ),
    wrong=(
        Wrong(
            "only the dependence of y_i on its own x_i is there; each y also depends on the other "
            "x of its row",
            "y * (dy - inner)",
            "dy * y * (1.0 - y)",
        ),
        Wrong(
            "a bracket is missing: the factor in front belongs to both terms",
            "y * (dy - inner)",
            "y * dy - inner",
        ),
        Wrong(
            "the sign of the sum is wrong: the y of a row share 1, so what raises one of them "
            "lowers the others; Z = sum_k exp(x_k) is a denominator, whose derivative has a minus",
            "y * (dy - inner)",
            "y * (dy + inner)",
        ),
        Wrong(
            "the bracket is turned round: y_i grows with its own x_i, so dy_i counts with a plus, "
            "and the sum, which the row shares, with a minus",
            "y * (dy - inner)",
            "y * (inner - dy)",
        ),
        Wrong("the factor in front is missing", "y * (dy - inner)", "dy - inner"),
        Wrong(
            "the dependence through the sum of exponentials is missing",
            "y * (dy - inner)",
            "y * dy",
        ),
        Wrong(
            "the sum that is subtracted has no weights in it",
            "(dy * y).sum(",
            "dy.sum(",
        ),
        Wrong(
            "the sum runs over the whole array; each row has its own",
            "(dy * y).sum(axis=-1, keepdims=True)",
            "(dy * y).sum()",
        ),
        Wrong("the sum runs over the wrong axis", "(dy * y).sum(axis=-1", "(dy * y).sum(axis=0"),
        Wrong(
            "it is divided by the batch size: if the loss is a mean, that is in the gradient that "
            "came in already",
            "return y * (dy - inner)",
            "return y * (dy - inner) / len(dy)",
        ),
        Wrong("a mean stands where a sum belongs", "(dy * y).sum(", "(dy * y).mean("),
    ),
)
