"""Embeddings, convolutions, gates, pooling, dropout and initial weights."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, constant, draw_questions, pair
from npformer import functional as F
from npformer.layers import Embedding, Linear

EMBEDDING = pair(F.embedding, F.embedding_backward, ("table",))
CONV1D = pair(F.conv1d, F.conv1d_backward, ("x", "W"))
GATED = pair(F.gated, F.gated_backward, ("x", "W_gate", "W_up", "W_down"))
MEAN_POOLING = pair(F.mean_pooling, F.mean_pooling_backward, ("x",))


def glu(arrays, settings, dy):
    """Return the gated linear unit of a row: the first half times the sigmoid of the second."""
    up, gate = np.split(arrays["x"], 2)
    return {"y": up * F.sigmoid(gate)[0]}


def dropout(arrays, settings, dy):
    return {"y": F.dropout(arrays["x"], settings["rate"], np.random.default_rng(0))[0]}


def largest_after_dropout(arrays, settings, dy):
    return {"y": dropout({"x": np.ones(1000)}, settings, dy)["y"].max()}


def smallest_after_dropout(arrays, settings, dy):
    """Return what remains of NaN: NaN itself, unless one became 0."""
    return {"y": np.fmin.reduce(dropout({"x": np.full(1000, np.nan)}, settings, dy)["y"])}


def spread_of_linear(arrays, settings, dy):
    return {"y": round(float(Linear(300, 100, seed=0).weight.value.std()), 2)}


def spread_of_embedding(arrays, settings, dy):
    return {"y": round(float(Embedding(1000, 50, seed=0).weight.value.std()), 2)}


def draw_embedding(rng: np.random.Generator) -> Question:
    vocab_size, d_model = rng.integers(1, 7, size=2)
    ids = rng.integers(0, vocab_size, size=rng.integers(1, 6, size=2))
    arrays = {"ids": ids, "table": rng.normal(size=(vocab_size, d_model))}
    dy = rng.normal(size=(*ids.shape, d_model))
    return ask(EMBEDDING, "embedding", arrays=arrays, dy=dy, dtype="float64")


def draw_conv1d(rng: np.random.Generator) -> Question:
    batch, d_in, d_out, kernel = rng.integers(1, 5, size=4)
    length = int(rng.integers(kernel, 9))
    arrays = {
        "x": rng.normal(size=(batch, length, d_in)),
        "W": rng.normal(size=(kernel, d_in, d_out)),
    }
    settings = {"padding": str(rng.choice(["same", "valid"]))}
    length_out = length if settings["padding"] == "same" else length - kernel + 1
    dy = rng.normal(size=(batch, length_out, d_out))
    return ask(CONV1D, "conv1d", arrays=arrays, settings=settings, dy=dy, dtype="float64")


def draw_gated(rng: np.random.Generator) -> Question:
    rows, d_model, d_ff = rng.integers(1, 7, size=3)
    arrays = {
        "x": rng.normal(size=(2, rows, d_model)),
        "W_gate": rng.normal(size=(d_model, d_ff)),
        "W_up": rng.normal(size=(d_model, d_ff)),
        "W_down": rng.normal(size=(d_ff, d_model)),
    }
    dy = rng.normal(size=(2, rows, d_model))
    return ask(GATED, "gated", arrays=arrays, dy=dy, dtype="float64")


def draw_mean_pooling(rng: np.random.Generator) -> Question:
    batch, length, d_model = rng.integers(1, 7, size=3)
    mask = np.arange(length) < rng.integers(0, length + 1, size=(batch, 1))
    arrays = {"x": rng.normal(size=(batch, length, d_model)), "mask": mask}
    dy = rng.normal(size=(batch, d_model))
    return ask(MEAN_POOLING, "mean_pooling", arrays=arrays, dy=dy, dtype="float64")


TABLE = {"table": [[1.0], [2.0], [3.0]]}

PARTS = [
    Part(
        "embedding",
        "Embeddings",
        "Rows of a table. What differs is an id that has no row.",
        (
            ask(
                EMBEDDING,
                "embedding",
                "id -1 in the table [1, 2, 3]",
                name="negative",
                arrays=TABLE | {"ids": [-1]},
                refused=ValueError,
            ),
            ask(
                EMBEDDING,
                "embedding_beyond",
                "id 3 in the table [1, 2, 3]",
                name="too_large",
                arrays=TABLE | {"ids": [3]},
                refused=ValueError,
            ),
        ),
        draw_questions(draw_embedding, seed=41),
    ),
    Part(
        "conv1d",
        "Convolutions",
        "Cross-correlations along the sequence, W of shape (kernel, in, out). What differs are the "
        "axes of W, and where an even kernel stands.",
        (
            ask(
                CONV1D,
                "conv1d_default",
                'padding "same", x = [1, 0, 0, 0], W = [10, 20]',
                name="even",
                arrays={"x": [[[1.0], [0.0], [0.0], [0.0]]], "W": [[[10.0]], [[20.0]]]},
                settings={"padding": "same"},
            ),
        ),
        draw_questions(draw_conv1d, seed=42),
    ),
    Part(
        "gates",
        "Gates",
        "(silu(x W_gate) * (x W_up)) W_down. What differs is which half of a joint matrix is the "
        "gate.",
        (
            ask(
                glu,
                "glu",
                "GLU of [1, 2], which has half as many features",
                arrays={"x": [1.0, 2.0]},
            ),
        ),
        draw_questions(draw_gated, seed=43),
    ),
    Part(
        "pooling",
        "Mean pooling",
        "The mean of the tokens that a mask keeps. What differs is what a mean divides by.",
        (
            ask(
                MEAN_POOLING,
                "mean_pooling_default",
                "no token kept, x = [1, 2]",
                name="nothing_kept",
                arrays={"x": [[[1.0], [2.0]]], "mask": [[False, False]]},
            ),
            ask(
                constant([1, 1, 1]),
                "average_of_windows",
                "windows of 3 with 1 place of padding, x = [1, 1, 1], means of what is there",
                name="windows",
                arrays={"x": [1.0, 1.0, 1.0]},
            ),
        ),
        draw_questions(draw_mean_pooling, seed=44),
    ),
    Part(
        "dropout",
        "Dropout",
        "y = x m / (1 - rate) in training. Draws differ from library to library; numbers that do "
        "not depend on them are compared.",
        (
            ask(
                largest_after_dropout,
                "largest_after_dropout",
                "1,000 ones, rate 0.25: the largest number",
                name="scale",
                arrays={},
                settings={"rate": 0.25},
            ),
            ask(
                smallest_after_dropout,
                "smallest_after_dropout",
                "1,000 NaN, rate 0.5: the smallest number, NaN if all are",
                name="nan",
                arrays={},
                settings={"rate": 0.5},
            ),
            ask(
                largest_after_dropout,
                "largest_after_dropping_all",
                "1,000 ones, rate 1: the largest number",
                name="all_dropped",
                arrays={},
                settings={"rate": 1.0},
                refused=ValueError,
            ),
        ),
    ),
    Part(
        "initial",
        "Initial weights",
        "The standard deviation of a new layer's weights, rounded to hundredths, because draws "
        "differ.",
        (
            ask(
                spread_of_linear,
                "spread_of_linear",
                "a linear map from 300 features to 100",
                arrays={},
            ),
            ask(
                spread_of_embedding,
                "spread_of_embedding",
                "an embedding of 1,000 tokens with 50 features",
                arrays={},
            ),
        ),
    ),
]
