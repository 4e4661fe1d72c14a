"""pooling_backward: the backward pass of mean pooling with a mask."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw, keep

EXERCISE = Exercise(
    name="pooling_backward",
    title="dx of mean pooling with a mask",
    page="chapters/pooling.md",
    hints=(
        "How much does y change if one entry of a kept token changes by 1? And one of padding?",
        "Each kept token has the same share in y. So each of them gets the same gradient, and "
        "padding gets none. dy lacks the axis of the sequence: it has to be put in.",
        "dy divided by `count`, with an axis of size 1 in the middle; np.where with the mask (and "
        "an axis at its end) spreads it over the kept tokens and puts 0 elsewhere.",
    ),
    why="""\
y = sum over kept tokens t of x_t / count. x_t is in y with the factor 1 / count if the mask keeps
it, and not at all otherwise:
    dx_t = dy / count for kept tokens, 0 for padding.""",
    mark=Pair(
        "pooling",
        "pooling_backward",
        ("dx",),
        (
            Trial("sequences without padding", (draw(2, 4, 3), keep([4, 4], 4)), {"the length": 4}),
            Trial(
                "sequences with padding",
                (draw(3, 4, 2, seed=1), keep([4, 2, 1], 4)),
                {"the length": 4},
            ),
            Trial("a sequence of padding alone", (draw(2, 3, 2, seed=2), keep([2, 0], 3))),
            Trial("larger arrays", (draw(6, 20, 9), keep([20, 15, 9, 20, 3, 1], 20))),
        ),
    ),
    wrong=(
        Wrong(
            "the mask is forgotten: padding gets a gradient",
            "np.where(mask[..., None], share, 0.0)",
            "share + np.zeros((*mask.shape, 1), dtype=share.dtype)",
        ),
        Wrong("the division of the mean is forgotten: y is not a sum", "(dy / count)", "dy"),
        Wrong(
            "it is divided by the whole length; the mean is over the tokens that the mask keeps",
            "(dy / count)",
            "(dy / mask.shape[1])",
        ),
        Wrong(
            "the mask is forgotten, and it is divided by the whole length: padding gets a gradient",
            "np.where(mask[..., None], share, 0.0)",
            "share * count[..., None] / mask.shape[1] + np.zeros((*mask.shape, 1))",
        ),
        Wrong(
            "the axis of the sequence is missing: each of its tokens has a gradient",
            "np.where(mask[..., None], share, 0.0)",
            "share[:, 0]",
        ),
        Wrong(
            "the axis of the sequence has size 1: each of its tokens has a gradient",
            "np.where(mask[..., None], share, 0.0)",
            "share",
        ),
    ),
)
