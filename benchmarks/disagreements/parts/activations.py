"""Elementwise maps, softmax, and the largest of several."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, constant, draw_questions, pair
from npformer import functional as F

GELU = pair(F.gelu, F.gelu_backward, ("x",))
SIGMOID = pair(F.sigmoid, F.sigmoid_backward, ("x",))
SILU = pair(F.silu, F.silu_backward, ("x",))
RELU = pair(F.relu, F.relu_backward, ("x",))
SOFTMAX = pair(F.softmax, F.softmax_backward, ("x",))
MAX_POOLING = pair(F.max_pooling, F.max_pooling_backward, ("x",))


def log_softmax(arrays, settings, dy):
    shifted = arrays["x"] - arrays["x"].max()
    return {"y": shifted - np.log(np.exp(shifted).sum())}


def largest(arrays, settings, dy):
    """Return the largest of a row, as `max_pooling` does along a sequence."""
    answers = MAX_POOLING({"x": arrays["x"][None, :, None]}, {}, dy.reshape(1, 1))
    return {"y": answers["y"].reshape(()), "dx": answers["dx"].reshape(-1)}


def draw_gelu(rng: np.random.Generator) -> Question:
    x = rng.normal(scale=3.0, size=rng.integers(1, 9, size=2))
    settings = {"approximate": str(rng.choice(["none", "tanh"]))}
    dy = rng.normal(size=x.shape)
    return ask(GELU, "gelu", arrays={"x": x}, settings=settings, dy=dy, dtype="float64")


def draw_silu(rng: np.random.Generator) -> Question:
    x = rng.normal(scale=5.0, size=rng.integers(1, 9, size=2))
    return ask(SILU, "silu", arrays={"x": x}, dy=rng.normal(size=x.shape), dtype="float64")


def draw_relu(rng: np.random.Generator) -> Question:
    x = rng.integers(-3, 4, size=rng.integers(1, 9, size=2)).astype("float64")  # with zeros
    return ask(RELU, "relu", arrays={"x": x}, dy=rng.normal(size=x.shape), dtype="float64")


def draw_softmax(rng: np.random.Generator) -> Question:
    x = rng.normal(scale=4.0, size=rng.integers(1, 6, size=3))
    settings = {"axis": int(rng.integers(0, 3))}
    dy = rng.normal(size=x.shape)
    return ask(SOFTMAX, "softmax", arrays={"x": x}, settings=settings, dy=dy, dtype="float64")


def draw_max_pooling(rng: np.random.Generator) -> Question:
    x = rng.integers(0, 4, size=rng.integers(1, 6, size=3)).astype("float64")  # with ties
    dy = rng.normal(size=(x.shape[0], x.shape[2]))
    return ask(MAX_POOLING, "max_pooling", arrays={"x": x}, dy=dy, dtype="float64")


PARTS = [
    Part(
        "gelu",
        "GELU",
        "x Phi(x), exactly or in its tanh form. What differs is which one a name means, and the "
        "left tail: 1 + erf(x / sqrt(2)) and 1 + tanh(u) cancel there.",
        (
            ask(
                GELU,
                "gelu_default",
                "the default form, x = -1",
                arrays={"x": [-1.0]},
                dy=[1.0],
            ),
            ask(
                GELU,
                "gelu",
                "the exact form, x = -5.5",
                name="exact_tail",
                arrays={"x": [-5.5]},
                settings={"approximate": "none"},
                dy=[1.0],
            ),
            ask(
                GELU,
                "gelu",
                "the tanh form, x = -4",
                name="tanh_tail",
                arrays={"x": [-4.0]},
                settings={"approximate": "tanh"},
                dy=[1.0],
            ),
        ),
        draw_questions(draw_gelu, seed=31),
    ),
    Part(
        "sigmoid",
        "Sigmoid and SiLU",
        "1 / (1 + exp(-x)), and x times that. What differs is the left tail, and the slope where "
        "y is nearly 1: y (1 - y) cancels.",
        (
            ask(SIGMOID, "sigmoid", "sigmoid, x = -20", arrays={"x": [-20.0]}, dy=[1.0]),
            ask(
                SIGMOID,
                "sigmoid",
                "sigmoid, x = 16",
                name="right",
                arrays={"x": [16.0]},
                dy=[1.0],
            ),
            ask(
                SIGMOID,
                "sigmoid",
                "sigmoid, x = -95: float32 holds it as a subnormal number",
                name="subnormal",
                arrays={"x": [-95.0]},
            ),
            ask(SILU, "silu", "SiLU, x = -20", arrays={"x": [-20.0]}, dy=[1.0]),
        ),
        draw_questions(draw_silu, seed=32),
    ),
    Part(
        "relu",
        "ReLU at 0 and at NaN",
        "max(x, 0). At 0 there is no derivative: npformer's is 0.",
        (
            ask(RELU, "relu", "relu, x = 0", name="at_zero", arrays={"x": [0.0]}, dy=[1.0]),
            ask(
                RELU,
                "maximum",
                "maximum(x, 0), x = 0",
                name="maximum",
                arrays={"x": [0.0]},
                dy=[1.0],
            ),
            ask(RELU, "relu", "relu, x = NaN", name="nan", arrays={"x": [np.nan]}),
        ),
        draw_questions(draw_relu, seed=33),
    ),
    Part(
        "softmax",
        "Softmax",
        "exp(x_i) / sum_j exp(x_j). What differs is the axis if none is named, what remains of "
        "small probabilities, and a row of minus infinity.",
        (
            ask(
                constant(0.25),
                "softmax_without_axis",
                "no axis named, x = zeros of shape (2, 3, 4): the first number",
                name="axis",
                arrays={"x": np.zeros((2, 3, 4))},
            ),
            ask(
                SOFTMAX,
                "softmax",
                "x = [-inf, -inf]",
                name="nothing",
                arrays={"x": [-np.inf, -np.inf]},
                settings={"axis": -1},
                dy=[1.0, 0.0],
            ),
            ask(
                SOFTMAX,
                "softmax",
                "x = [0, -95]: float32 holds the second as a subnormal number",
                name="subnormal",
                arrays={"x": [0.0, -95.0]},
                settings={"axis": -1},
            ),
            ask(
                log_softmax,
                "log_softmax",
                "its logarithm, x = [0, -200]",
                name="logarithm",
                arrays={"x": [0.0, -200.0]},
            ),
            ask(
                log_softmax,
                "log_softmax",
                "its logarithm, x = [20, 0]",
                name="sure",
                arrays={"x": [20.0, 0.0]},
            ),
        ),
        draw_questions(draw_softmax, seed=34),
    ),
    Part(
        "largest",
        "The largest: ties and NaN",
        "Max pooling over tokens, or the largest of a row. Among equals, npformer gives the whole "
        "gradient to the first; NaN counts as the largest.",
        (
            ask(
                largest,
                "largest",
                "the largest of [1, 1, 0]",
                name="ties",
                arrays={"x": [1.0, 1.0, 0.0]},
                dy=1.0,
            ),
            ask(
                largest,
                "largest",
                "the largest of [1, NaN, 2]",
                name="nan",
                arrays={"x": [1.0, np.nan, 2.0]},
                dy=1.0,
                gradients=(),
            ),
            ask(
                constant(1),
                "place_of_largest",
                "where it stands in [1, NaN, 2]",
                name="place_of_nan",
                arrays={"x": [1.0, np.nan, 2.0]},
            ),
            ask(
                constant(0),
                "place_of_largest",
                "where it stands in [0, 0]",
                name="place_of_ties",
                arrays={"x": [0.0, 0.0]},
            ),
        ),
        draw_questions(draw_max_pooling, seed=35),
    ),
]
