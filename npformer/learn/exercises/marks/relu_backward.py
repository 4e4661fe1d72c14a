"""relu_backward: the backward pass of ReLU."""

import numpy as np

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

EXERCISE = Exercise(
    name="relu_backward",
    title="dx of y = max(0, x)",
    page="chapters/activations.md",
    hints=(
        "Draw the graph of max(0, x). What is its slope to the left of 0, and to the right?",
        "Entry i of y depends on entry i of x alone. So dx_i is dy_i times the slope at x_i.",
        "The slope is 1 where x is positive, and 0 where it is negative. A comparison gives an "
        "array of True and False, which NumPy multiplies as 1 and 0.",
    ),
    why="""\
y_i = x_i where x_i > 0, with slope 1; y_i = 0 where x_i < 0, with slope 0. Entries do not mix:
    dx_i = dy_i times the slope at x_i.""",
    mark=Pair(
        "relu",
        "relu_backward",
        ("dx",),
        (
            Trial("a matrix", (draw(4, 5),)),
            Trial("numbers above 100", (100.0 + np.abs(draw(2, 2, 3)),)),
            Trial("larger arrays", (draw(3, 12, 20),)),
        ),
    ),
    wrong=(
        Wrong(
            "it is the gradient times y, where the slope of y belongs",
            "(x > 0.0)",
            "np.maximum(x, 0.0)",
        ),
        Wrong("it passes where x is negative, and stops where x is positive", "x > 0.0", "x < 0.0"),
        Wrong(
            "it stops where the gradient is negative; where it stops depends on x",
            "(x > 0.0)",
            "(dy > 0.0)",
        ),
        Wrong(
            "it is the gradient that came in: where x is negative, y does not depend on x",
            "dy * (x > 0.0)",
            "dy * 1.0",
        ),
        Wrong("the slope where x is negative is not -1", "(x > 0.0)", "np.sign(x)"),
    ),
)
