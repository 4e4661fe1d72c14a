"""multi_head_backward: the backward pass of multi-head attention."""

from itertools import combinations

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

WEIGHTS = tuple(0.5 * draw(6, 6, seed=seed) for seed in range(1, 5))
WAYS = {"queries": "dQ @ Wq.T", "keys": "dK @ Wk.T", "values": "dV @ Wv.T"}
ROLES = {
    "queries": "every token asks with its own query",
    "keys": "every token is found by its key, in the scores of all queries of its sequence",
    "values": "what a token gives to the averages is its value",
}


def forgotten(kept: tuple[str, ...]) -> Wrong:
    """Return the mistake of giving x only what came back along some of its three ways."""
    lost = [way for way in WAYS if way not in kept]
    ways = f"the way{'s' * (len(lost) - 1)} through the {' and the '.join(lost)}"
    says = "; ".join(ROLES[way] for way in lost)
    return Wrong(
        f"x is used three times, and {ways} {'is' if len(lost) == 1 else 'are'} missing: {says}",
        " + ".join(WAYS.values()),
        " + ".join(WAYS[way] for way in kept),
    )


PATHS = tuple(forgotten(kept) for n in (1, 2) for kept in combinations(WAYS, n))

EXERCISE = Exercise(
    name="multi_head_backward",
    title="dx and four weights' gradients of multi-head attention",
    page="chapters/attention.md",
    hints=(
        "Read the forward pass from bottom to top: the last product, merge, attend, split, the "
        "three products with x. Each line has a backward line, in the reverse order.",
        "The backward pass of `merge` is `split`, and that of `split` is `merge`. attend_backward "
        "gives three gradients by head. x is in three products: what they give for x adds up.",
        "dmerged = dy Wo^T and dWo = merged^T dy, summed over batch and length. Split dmerged, "
        "call attend_backward, merge each result. Each of the three is a linear map of x: its "
        "weight's gradient is x^T times it, and x gets the sum of the three products with W^T.",
    ),
    why="""\
y = merged Wo, as in linear_backward: dmerged = dy Wo^T, and dWo = merged^T dy over all rows.
merge only moves numbers, and so does its gradient, in the other direction: dheads = split(dmerged).
attend_backward gives the gradients of the three; merged, they are those of x Wq, x Wk and x Wv.
Each is a linear map of the same x: dW = x^T d, and dx is the sum of three terms d W^T.""",
    mark=Pair(
        "multi_head",
        "multi_head_backward",
        ("dx", "dWq", "dWk", "dWv", "dWo"),
        (
            Trial(
                "two heads",
                (draw(2, 4, 6), *WEIGHTS, 2),
                {"the batch size": 2, "the number of heads": 2, "the number of rows": 8},
            ),
            Trial("three heads", (draw(3, 2, 6, seed=5), *WEIGHTS, 3)),
            Trial("one head", (draw(1, 3, 6, seed=6), *WEIGHTS, 1)),
            Trial(
                "larger arrays", (draw(2, 12, 16), *(draw(16, 16, seed=i) / 4 for i in range(4)), 8)
            ),
        ),
    ),
    wrong=(
        *PATHS,
        Wrong(
            "heads are split by a reshape alone: that mixes up the features of different tokens",
            "split(dmerged, n_heads)",
            "dmerged.reshape(len(x), n_heads, x.shape[1], -1)",
        ),
        Wrong(
            "heads are merged by a reshape alone: that mixes up the features of different tokens",
            "(merge(d) for d in",
            "(d.reshape(x.shape) for d in",
        ),
        Wrong(
            "the last product is left out: the heads are multiplied by Wo on their way to y",
            "dmerged = dy @ Wo.T",
            "dmerged = dy",
        ),
        Wrong(
            "the output weight multiplies the merged heads, not x",
            '"bli,blo->io", merged, dy',
            '"bli,blo->io", x, dy',
        ),
        Wrong("the weight is used untransposed", "dmerged = dy @ Wo.T", "dmerged = dy @ Wo"),
    ),
)
