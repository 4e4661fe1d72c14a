"""own_mixer: a token mixer of one's own."""

from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.mixer import mark

EXERCISE = Exercise(
    name="own_mixer",
    title="forward, backward and explain of a token mixer of your own",
    page="extending.md",
    hints=(
        "Begin with the simplest rule in which tokens see each other: every token gets the mean of "
        "all tokens of its sequence. Do without a mask first; `check` says when the mask is next.",
        "With a mask: hide padding at the beginning of forward (tokens_of), divide by the number "
        "of tokens that are kept, at least 1, and hide padding in y too. In backward, hide padding "
        "in dy first. Each token got 1 / count of each: what does that make of the gradients?",
        "For the mean: dx of every kept token is the sum of dy over the kept tokens, divided by "
        "count. A parameter that multiplies something feature by feature has the sum, over batch "
        "and length, of dy times that something. explain: 1 / count where both are kept, else 0.",
    ),
    why="""\
One answer of many: y_i = a x_i + c mean(x), with a and c for each feature.
x_j is in y_j with the factor a, and in every y_i of its sequence with the factor c / count:
    dx_j = a dy_j + (c / count) sum_i dy_i.
a multiplies x_i, and c the mean: da is the sum of dy_i x_i over batch and length, dc of dy_i mean.
The gradient of padding is 0, because no token took anything from it.""",
    mark=mark,
)
