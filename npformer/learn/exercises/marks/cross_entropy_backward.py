"""cross_entropy_backward: the backward pass of softmax and cross-entropy."""

import numpy as np

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

EXERCISE = Exercise(
    name="cross_entropy_backward",
    title="dlogits of the mean of -log softmax(logits)[label]",
    page="chapters/cross_entropy.md",
    hints=(
        "Take one row z with the label c. Its loss is log(sum_k exp(z_k)) - z_c. Differentiate "
        "both terms by z_i.",
        "The first term gives the softmax of the row. The second gives 1 at the label and 0 "
        "elsewhere. Then remember the mean, and the number that came in.",
        "For each row with a label: softmax minus the one-hot row of its label, times dloss, "
        "divided by `count`. For a row without one: zeros.",
    ),
    why="""\
In one row, -log softmax(z)_c = log sum_k exp(z_k) - z_c. By z_i, the derivative of the first term
is exp(z_i) / sum_k exp(z_k) = p_i, and that of the second is [i = c]:
    dz_i = (p_i - [i = c]) dloss / count,
because the loss is the mean over `count` rows. A row without a label is not in it: its dz is 0.""",
    mark=Pair(
        "cross_entropy",
        "cross_entropy_backward",
        ("dlogits",),
        (
            Trial(
                "rows that all have a label",
                (draw(5, 4), np.array([0, 3, 1, 1, 2])),
                {"the number of rows": 5, "the number of classes": 4},
            ),
            Trial(
                "some rows without a label",
                (draw(6, 3, seed=1), np.array([2, -1, 0, -1, 1, 1])),
                {"the number of rows": 6, "the number of rows with a label": 4},
            ),
            Trial("no label at all", (draw(2, 3, seed=2), np.array([-1, -1]))),
            Trial("larger arrays", (draw(40, 20), np.arange(-20, 20))),
        ),
    ),
    wrong=(
        Wrong(
            "the mean is forgotten: the loss is divided by the number of labels",
            "(dloss / count)",
            "dloss",
        ),
        Wrong(
            "it is divided by the number of rows, but rows without a label are not counted",
            "(dloss / count)",
            "(dloss / len(right))",
        ),
        Wrong(
            "rows without a label have a gradient; they are not part of the loss",
            "np.where(has_label[:, None], drow, 0.0)",
            "drow",
        ),
        Wrong(
            "the derivative of the second term of the loss, that of the right class, is missing",
            "    drow[np.arange(len(right)), right] -= 1.0\n",
            "",
        ),
        Wrong(
            "it is made from log-probabilities where probabilities belong",
            "np.exp(log_p)",
            "log_p.copy()",
        ),
        Wrong(
            "probability and label are subtracted the wrong way round",
            "drow * (dloss",
            "-drow * (dloss",
        ),
        Wrong(
            "it is divided by all entries of the logits; the mean is over rows",
            "(dloss / count)",
            "(dloss / log_p.size)",
        ),
    ),
)
