"""cross_attention_backward: two gradients, of the target and of the memory."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

WEIGHTS = tuple(0.5 * draw(4, 4, seed=seed) for seed in range(1, 5))
LARGE = tuple(draw(16, 16, seed=seed) / 4 for seed in range(4))

EXERCISE = Exercise(
    name="cross_attention_backward",
    title="dx, dmemory and four weights' gradients of cross-attention",
    page="chapters/cross_attention.md",
    hints=(
        "It is multi_head_backward of exercise 13 with one head, and with two inputs. Which of the "
        "three products has x in it, and which have the memory?",
        "dtaken = dy Wo^T goes into attend_backward, which gives dQ, dK and dV. x is in one "
        "product, the memory in two: what the two give for the memory adds up.",
        "dx is dQ Wq^T. dmemory is dK Wk^T plus dV Wv^T. Each weight's gradient is its input, "
        "transposed, times the gradient of the product, summed over batch and tokens.",
    ),
    why="""\
y = taken Wo, as in linear_backward: dtaken = dy Wo^T, and dWo = taken^T dy over all rows.
attend_backward gives dQ, of the target's length, and dK and dV, of the memory's.
Q = x Wq, so dx = dQ Wq^T. K = m Wk and V = m Wv have the same m: dm = dK Wk^T + dV Wv^T.
In a decoder all of its blocks read one memory, and their dm add up as well.""",
    mark=Pair(
        "cross_attention",
        "cross_attention_backward",
        ("dx", "dmemory", "dWq", "dWk", "dWv", "dWo"),
        (
            Trial("a longer memory", (draw(2, 3, 4), draw(2, 5, 4, seed=7), *WEIGHTS)),
            Trial("a shorter memory", (draw(1, 4, 4, seed=8), draw(1, 2, 4, seed=9), *WEIGHTS)),
            Trial("larger arrays", (draw(2, 12, 16), draw(2, 20, 16, seed=1), *LARGE)),
        ),
    ),
    wrong=(
        Wrong(
            "the memory is used twice, and the way through the values is missing",
            "dK @ Wk.T + dV @ Wv.T",
            "dK @ Wk.T",
        ),
        Wrong(
            "the memory is used twice, and the way through the keys is missing",
            "dK @ Wk.T + dV @ Wv.T",
            "dV @ Wv.T",
        ),
        Wrong(
            "the weights of keys and values are swapped",
            "dK @ Wk.T + dV @ Wv.T",
            "dK @ Wv.T + dV @ Wk.T",
        ),
        Wrong("the weight is used untransposed", "dQ @ Wq.T", "dQ @ Wq"),
        Wrong(
            "the last product is left out: what was taken is multiplied by Wo on its way to y",
            "dtaken = dy @ Wo.T",
            "dtaken = dy",
        ),
    ),
)
