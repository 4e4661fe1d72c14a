"""Losses."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, constant, draw_questions, pair
from npformer import functional as F

CROSS_ENTROPY = pair(F.softmax_cross_entropy, F.softmax_cross_entropy_backward, ("logits",))
BINARY = pair(
    F.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits_backward, ("logits",)
)
SQUARED = pair(F.mean_squared_error, F.mean_squared_error_backward, ("prediction",))


def draw_cross_entropy(rng: np.random.Generator) -> Question:
    rows, classes = rng.integers(2, 7, size=2)
    labels = rng.integers(-1, classes, size=rows)
    labels[0] = 0  # at least one
    arrays = {
        "logits": rng.normal(scale=3.0, size=(rows, classes)),
        "labels": labels,
        "class_weights": rng.uniform(0.5, 2.0, size=classes),
    }
    settings = {"label_smoothing": float(rng.choice([0.0, 0.1, 0.3]))}
    return ask(
        CROSS_ENTROPY, "cross_entropy", arrays=arrays, settings=settings, dy=1.0, dtype="float64"
    )


def draw_binary(rng: np.random.Generator) -> Question:
    shape = tuple(rng.integers(1, 7, size=2))
    arrays = {"logits": rng.normal(scale=3.0, size=shape), "targets": rng.random(shape)}
    return ask(BINARY, "binary_cross_entropy", arrays=arrays, dy=1.0, dtype="float64")


def draw_squared(rng: np.random.Generator) -> Question:
    shape = tuple(rng.integers(1, 7, size=2))
    arrays = {"prediction": rng.normal(size=shape), "target": rng.normal(size=shape)}
    return ask(SQUARED, "squared_error", arrays=arrays, dy=1.0, dtype="float64")


TWO = [[0.0, 0.0], [0.0, 0.0]]
"""Logits of two rows: the probability of each class is a half."""

PARTS = [
    Part(
        "cross_entropy",
        "Cross entropy",
        "The mean over labels of -log softmax(logits), in nats. What differs is what the mean "
        "divides by, with ignored labels and class weights, and how small a loss can be.",
        (
            ask(
                CROSS_ENTROPY,
                "cross_entropy_default",
                "logits [20, 0], label 0",
                name="sure",
                arrays={"logits": [[20.0, 0.0]], "labels": [0]},
                dy=1.0,
            ),
            ask(
                CROSS_ENTROPY,
                "cross_entropy_default",
                "logits zeros, two labels of which one is ignored",
                name="one_ignored",
                arrays={"logits": TWO, "labels": [0, -1]},
            ),
            ask(
                CROSS_ENTROPY,
                "cross_entropy_default",
                "all labels ignored",
                name="all_ignored",
                arrays={"logits": TWO, "labels": [-1, -1]},
                dy=1.0,
            ),
            ask(
                CROSS_ENTROPY,
                "cross_entropy_weighted",
                "logits zeros, labels 0 and 1, class weights 1 and 3",
                name="class_weights",
                arrays={"logits": TWO, "labels": [0, 1], "class_weights": [1.0, 3.0]},
            ),
            ask(
                CROSS_ENTROPY,
                "cross_entropy_smoothed",
                "logits [1, 0], label 0, label smoothing 0.2",
                name="smoothing",
                arrays={"logits": [[1.0, 0.0]], "labels": [0]},
                settings={"label_smoothing": 0.2},
            ),
        ),
        draw_questions(draw_cross_entropy, seed=51),
    ),
    Part(
        "binary_cross_entropy",
        "Binary cross entropy",
        "The mean of -t log p - (1 - t) log(1 - p). What differs is the bound that some put on p.",
        (
            ask(
                BINARY,
                "binary_cross_entropy",
                "logit -20, target 0",
                name="sure",
                arrays={"logits": [-20.0], "targets": [0.0]},
                dy=1.0,
            ),
            ask(
                BINARY,
                "binary_cross_entropy",
                "logit 20, target 0",
                name="wrong",
                arrays={"logits": [20.0], "targets": [0.0]},
                dy=1.0,
            ),
            ask(
                constant(-np.log(float(np.float32(1e-10)))),
                "binary_cross_entropy_of_probability",
                "p = 1e-10, target 1: -log p",
                name="small_probability",
                arrays={"p": [1e-10], "targets": [1.0]},
            ),
            ask(
                constant(np.inf),
                "binary_cross_entropy_of_probability",
                "p = 0, target 1: -log p",
                name="zero_probability",
                arrays={"p": [0.0], "targets": [1.0]},
            ),
        ),
        draw_questions(draw_binary, seed=52),
    ),
    Part(
        "squared_error",
        "Squared error",
        "The mean of (prediction - target)^2. What differs is a factor of one half, and shapes "
        "that do not fit.",
        (
            ask(
                SQUARED,
                "squared_error_default",
                "prediction [1, 2], target [3, 2]",
                name="value",
                arrays={"prediction": [1.0, 2.0], "target": [3.0, 2.0]},
                dy=1.0,
            ),
            ask(
                SQUARED,
                "squared_error",
                "prediction [[1], [2]], target [1, 2]",
                name="broadcast",
                arrays={"prediction": [[1.0], [2.0]], "target": [1.0, 2.0]},
                refused=ValueError,
            ),
        ),
        draw_questions(draw_squared, seed=53),
    ),
]
