"""ONNX operators: what runtimes give for the same graph of one node."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, constant, draw_questions


def group_norm(arrays, settings, dy):
    x = arrays["x"]
    centred = x - x.mean()
    return {"y": centred / np.sqrt((centred**2).mean() + 1e-5)}


def operators(arrays, settings, dy):
    """Return what the operators of the questions give for a table of numbers, side by side."""
    x, low, high = arrays["x"], settings["low"], settings["high"]
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    results = [
        centred / np.sqrt(variance),
        centred / np.sqrt(variance + 1e-5),
        x.argmax(axis=1),
        np.round(x),
        np.clip(x, low, high),
        np.logaddexp.reduce(x, axis=1),
        np.logaddexp(0.0, x),
        np.round(x) % settings["divisor"],
        np.maximum(x, low),
    ]
    return {"y": np.concatenate([np.ravel(result) for result in results])}


def draw_operators(rng: np.random.Generator) -> Question:
    x = rng.normal(scale=4.0, size=(rng.integers(1, 6), rng.integers(2, 6)))
    low, high = sorted(rng.normal(size=2).astype("float32").tolist())
    settings = {"low": low, "high": high, "divisor": int(rng.integers(1, 6))}
    return ask(operators, "operators", arrays={"x": x}, settings=settings)


PARTS = [
    Part(
        "onnx",
        "ONNX operators",
        "Graphs of one node. npformer exports LayerNormalization, Softmax, Gelu and others; what "
        "differs at their edges is here.",
        (
            ask(
                constant([[0, 0]]),
                "mean_variance_normalization",
                "MeanVarianceNormalization of [1, 1], along the row",
                name="constant_row",
                arrays={"x": [[1.0, 1.0]]},
            ),
            ask(
                group_norm,
                "group_normalization",
                "GroupNormalization of [5000, 5001, 5002, 5003], one group",
                name="group_norm",
                arrays={"x": [[[5000.0], [5001.0], [5002.0], [5003.0]]]},
            ),
            ask(
                constant([1]),
                "top_k",
                "TopK with k 1 of [1, NaN, 2]: the place",
                name="top_k_nan",
                arrays={"x": [1.0, np.nan, 2.0]},
            ),
            ask(
                constant([0.0, 2.0, 2.0, -2.0]),
                "rounded",
                "Round of [0.5, 1.5, 2.5, -2.5]: ties go to even numbers",
                name="round",
                arrays={"x": [0.5, 1.5, 2.5, -2.5]},
            ),
            ask(
                constant([np.nan, 0.0]),
                "clip_of_nan",
                "Clip of [NaN, -1] to 0 and 1",
                name="clip_nan",
                arrays={"x": [np.nan, -1.0]},
            ),
            ask(
                constant([-np.inf]),
                "reduce_log_sum_exp",
                "ReduceLogSumExp of [-inf, -inf]",
                name="log_sum_exp",
                arrays={"x": [-np.inf, -np.inf]},
            ),
            ask(
                constant([100.0 + np.log(2.0)]),
                "reduce_log_sum_exp",
                "ReduceLogSumExp of [100, 100]",
                name="log_sum_exp_large",
                arrays={"x": [100.0, 100.0]},
            ),
            ask(
                constant([np.log1p(np.exp(-20.0))]),
                "softplus",
                "Softplus of -20",
                name="softplus",
                arrays={"x": [-20.0]},
            ),
            ask(
                constant([2]),
                "mod_of_negative",
                "Mod of -1 and 3",
                name="mod",
                arrays={"a": [-1], "b": [3]},
            ),
            ask(
                constant([np.nan]),
                "maximum_of_nan",
                "Max of NaN and 1",
                name="max_nan",
                arrays={"a": [np.nan], "b": [1.0]},
            ),
        ),
        draw_questions(draw_operators, seed=71),
    ),
]
