"""scores_backward: the backward pass of attention's scores."""

import math

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

EXERCISE = Exercise(
    name="scores_backward",
    title="dquery and dkey of S = Q K^T / sqrt(d_head)",
    page="chapters/attention.md",
    hints=(
        "It is a product of two matrices, times a constant. Write S_ij as a sum over the features.",
        "S_ij = scale sum_c Q_ic K_jc. Which entries of S contain Q_ic? Sum over them. For K_jc "
        "the sum runs over the queries i: dS is used transposed.",
        "dquery is dS times K, times scale. dkey is dS with its last two axes swapped, times Q, "
        "times scale. Use swapaxes(-1, -2), not .T, so that batches work.",
    ),
    why="""\
S_ij = scale sum_c Q_ic K_jc.
Q_ic is in row i of S:     dQ_ic = scale sum_j dS_ij K_jc,   dQ = scale dS K.
K_jc is in column j of S:  dK_jc = scale sum_i dS_ij Q_ic,   dK = scale dS^T Q.""",
    mark=Pair(
        "scores",
        "scores_backward",
        ("dquery", "dkey"),
        (
            Trial(
                "a single head",
                (draw(4, 3), draw(5, 3, seed=1)),
                {"sqrt(d_head)": math.sqrt(3), "d_head": 3, "the number of queries": 4},
            ),
            Trial("batch and heads", (draw(2, 2, 3, 4), draw(2, 2, 5, 4, seed=1))),
            Trial("as many keys as queries", (draw(4, 3), draw(4, 3, seed=1))),
            Trial("larger arrays", (draw(2, 3, 12, 8), draw(2, 3, 20, 8, seed=1))),
        ),
    ),
    wrong=(
        Wrong("the scale is missing: S contains it once", "dS @ key * scale", "dS @ key"),
        Wrong(
            "the scale is missing: S contains it once",
            "@ query * scale",
            "@ query",
        ),
        Wrong("it is divided by sqrt(d_head) twice", "dS @ key * scale", "dS @ key * scale**2"),
        Wrong("it is divided by sqrt(d_head) twice", "@ query * scale", "@ query * scale**2"),
    ),
)
