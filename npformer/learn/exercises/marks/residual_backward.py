"""residual_backward: the backward pass of two residual connections."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

WEIGHTS = 0.5 * draw(4, 4, seed=1), 0.5 * draw(4, 4, seed=2)

EXERCISE = Exercise(
    name="residual_backward",
    title="dx, dW1 and dW2 of two residual connections",
    page="chapters/block.md",
    hints=(
        "Go backwards: begin with z = h + g(h). How many ways lead from h to z?",
        "A sum passes its gradient to both of its terms unchanged. h is one of the terms, and the "
        "other one depends on h too: dh has two parts. The same happens once more for x.",
        "layer_backward(dz, g_cache) gives dW2 and what h gets through g; added to dz it is dh. "
        "Do the same with dh, f_cache and dW1 to get dx.",
    ),
    why="""\
z = h + g(h): h reaches z directly, with derivative 1, and through g. The chain rule adds both:
    dh = dz + (what layer_backward makes of dz with g's cache), which also gives dW2.
x = the input of h = x + f(x), in the same way:
    dx = dh + (what layer_backward makes of dh with f's cache), which also gives dW1.""",
    mark=Pair(
        "residual",
        "residual_backward",
        ("dx", "dW1", "dW2"),
        (
            Trial("x of shape (5, 4)", (draw(5, 4), *WEIGHTS)),
            Trial("x of shape (2, 3, 4)", (draw(2, 3, 4), *WEIGHTS)),
            Trial("larger arrays", (draw(3, 12, 16), draw(16, 16) / 4, draw(16, 16, seed=1) / 4)),
        ),
    ),
    wrong=(
        Wrong(
            "one of the two ways from h to z is missing: z = h + g(h)",
            "dh = dz + through_g",
            "dh = through_g",
        ),
        Wrong(
            "one of the two ways from h to z is missing: h is in g(h) too",
            "dh = dz + through_g",
            "dh = dz",
        ),
        Wrong(
            "one of the two ways from x to h is missing: h = x + f(x)",
            "dx = dh + through_f",
            "dx = through_f",
        ),
        Wrong(
            "one of the two ways from x to h is missing: x is in f(x) too",
            "dx = dh + through_f",
            "dx = dh",
        ),
        Wrong(
            "the way past f begins at h, not at z",
            "dx = dh + through_f",
            "dx = dz + through_f",
        ),
        Wrong(
            "f gets the gradient of z; its output goes into h, which has a gradient of its own",
            "layer_backward(dh, f_cache)",
            "layer_backward(dz, f_cache)",
        ),
    ),
)
