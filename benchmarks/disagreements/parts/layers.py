"""Linear maps and norms."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, constant, draw_questions, pair
from npformer import functional as F

LINEAR = pair(F.linear, F.linear_backward, ("x", "W", "b"))
LAYER_NORM = pair(F.layer_norm, F.layer_norm_backward, ("x", "gamma", "beta"))
RMS_NORM = pair(F.rms_norm, F.rms_norm_backward, ("x", "gamma"))


def default_layer_norm(arrays, settings, dy):
    """Layer norm as a layer begins: gamma is 1, and beta 0."""
    x = arrays["x"]
    ones = np.ones(x.shape[-1])
    answers = LAYER_NORM({"x": x, "gamma": ones, "beta": 0 * ones}, settings, dy)
    return {name: value for name, value in answers.items() if name in ("y", "dx")}


def default_rms_norm(arrays, settings, dy):
    """RMS norm as a layer begins: gamma is 1."""
    x = arrays["x"]
    answers = RMS_NORM({"x": x, "gamma": np.ones(x.shape[-1])}, settings, dy)
    return {name: value for name, value in answers.items() if name in ("y", "dx")}


def draw_linear(rng: np.random.Generator) -> Question:
    rows, d_in, d_out = rng.integers(1, 7, size=3)
    arrays = {
        "x": rng.normal(size=(2, rows, d_in)),
        "W": rng.normal(size=(d_in, d_out)),
        "b": rng.normal(size=d_out),
    }
    dy = rng.normal(size=(2, rows, d_out))
    return ask(LINEAR, "linear", arrays=arrays, dy=dy, dtype="float64")


def draw_layer_norm(rng: np.random.Generator) -> Question:
    rows, d = rng.integers(2, 9, size=2)
    arrays = {
        "x": rng.normal(3.0, 2.0, size=(2, rows, d)),
        "gamma": rng.normal(size=d),
        "beta": rng.normal(size=d),
    }
    settings = {"eps": float(2.0 ** -rng.integers(10, 40))}  # exact in float32
    dy = rng.normal(size=(2, rows, d))
    return ask(LAYER_NORM, "layer_norm", arrays=arrays, settings=settings, dy=dy, dtype="float64")


def draw_rms_norm(rng: np.random.Generator) -> Question:
    rows, d = rng.integers(1, 9, size=2)
    arrays = {"x": rng.normal(size=(2, rows, d)), "gamma": rng.normal(size=d)}
    settings = {"eps": float(2.0 ** -rng.integers(10, 40))}  # exact in float32
    dy = rng.normal(size=(2, rows, d))
    return ask(RMS_NORM, "rms_norm", arrays=arrays, settings=settings, dy=dy, dtype="float64")


PARTS = [
    Part(
        "linear",
        "Linear maps",
        "y = x W + b. What differs is how W lies in memory and in files.",
        (
            ask(
                constant([3, 2]),
                "linear_shape",
                "the shape of the weights from 3 features to 2",
                arrays={},
                settings={"d_in": 3, "d_out": 2},
            ),
        ),
        draw_questions(draw_linear, seed=1),
    ),
    Part(
        "layer_norm",
        "Layer norm",
        "y = gamma (x - mean) / sqrt(var + eps) + beta. Layers differ in eps, which matters for "
        "rows of small numbers, and in how they compute the variance.",
        (
            ask(
                default_layer_norm,
                "layer_norm_default",
                "a new layer, x = [0, 0.002, 0.004, 0.006]: the first number",
                name="small",
                arrays={"x": [[0.0, 0.002, 0.004, 0.006]]},
                dy=[[1.0, 0.0, 0.0, 0.0]],
            ),
            ask(
                default_layer_norm,
                "layer_norm_default",
                "a new layer, x = [5000, 5001, 5002, 5003]",
                name="large_mean",
                arrays={"x": [[5000.0, 5001.0, 5002.0, 5003.0]]},
            ),
            ask(
                default_layer_norm,
                "layer_norm_default",
                "a new layer, x = [0.1, 0.1, 0.1]",
                name="equal",
                arrays={"x": [[0.1, 0.1, 0.1]]},
                dy=[[1.0, 0.0, 0.0]],
            ),
        ),
        draw_questions(draw_layer_norm, seed=2),
    ),
    Part(
        "rms_norm",
        "RMS norm",
        "y = gamma x / sqrt(mean(x^2) + eps).",
        (
            ask(
                default_rms_norm,
                "rms_norm_default",
                "a new layer, x = [0.001, 0.002]",
                name="small",
                arrays={"x": [[0.001, 0.002]]},
                dy=[[1.0, 0.0]],
            ),
            ask(
                default_rms_norm,
                "rms_norm_default",
                "a new layer, x = [1e20, 2e20]",
                name="huge",
                arrays={"x": [[1e20, 2e20]]},
            ),
        ),
        draw_questions(draw_rms_norm, seed=3),
    ),
]
