"""Fourier and Hartley transforms, sums and means."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, constant, draw_questions, pair
from npformer import functional as F

FOURIER = pair(F.fourier_mixing, F.fourier_mixing_backward, ("x",))
HARTLEY = pair(F.hartley_mixing, F.hartley_mixing_backward, ("x",))


def draw_fourier(rng: np.random.Generator) -> Question:
    x = rng.normal(size=rng.integers(1, 8, size=3))
    return ask(FOURIER, "fourier", arrays={"x": x}, dy=rng.normal(size=x.shape), dtype="float64")


def draw_hartley(rng: np.random.Generator) -> Question:
    x = rng.normal(size=rng.integers(1, 8, size=3))
    return ask(HARTLEY, "hartley", arrays={"x": x}, dy=rng.normal(size=x.shape), dtype="float64")


def draw_variance(rng: np.random.Generator) -> Question:
    x = rng.normal(1.0, 2.0, size=rng.integers(2, 9, size=2))
    reference = constant(x.var(axis=-1))
    return ask(reference, "variance", arrays={"x": x}, dtype="float64")


PARTS = [
    Part(
        "fourier",
        "Fourier mixing",
        "Re(F_seq x F_hidden), unnormalised, with exp(-2 pi i j k / n). An inverse transform is "
        "divided by n, unless a library says otherwise.",
        (
            ask(
                FOURIER,
                "fourier",
                "x = [[1, 2], [3, 4]]",
                name="value",
                arrays={"x": [[1.0, 2.0], [3.0, 4.0]]},
            ),
            ask(
                constant([1, 0]),
                "inverse",
                "the inverse transform of [1, 1]: real parts",
                name="inverse",
                arrays={"x": [1.0, 1.0]},
            ),
        ),
        draw_questions(draw_fourier, seed=61),
    ),
    Part(
        "hartley",
        "Hartley mixing",
        "Re(F x) - Im(F x): a sum over cos + sin.",
        (
            ask(
                HARTLEY,
                "hartley",
                "x = [[1, 2, 4]]",
                name="value",
                arrays={"x": [[1.0, 2.0, 4.0]]},
            ),
        ),
        draw_questions(draw_hartley, seed=62),
    ),
    Part(
        "sums",
        "Sums, means and variances",
        "Layer norm divides its variance by d. What differs is the divisor, and how many digits a "
        "sum keeps.",
        (
            ask(
                constant(0.25),
                "variance_default",
                "the variance of [0, 1], by default",
                name="divisor",
                arrays={"x": [0.0, 1.0]},
            ),
            ask(
                constant(1),
                "mean",
                "the mean of 41 ones",
                name="mean_of_ones",
                arrays={"x": np.ones(41)},
            ),
            ask(
                constant(2.0**25),
                "sum_of_ones",
                "the sum of 2^25 ones",
                name="many",
                arrays={},
                settings={"n": 2**25},
            ),
            ask(
                constant(60000.0),
                "mean",
                "the mean of [60000, 60000]",
                name="half_mean",
                arrays={"x": [60000.0, 60000.0]},
                dtype="float16",
            ),
            ask(
                constant(2.5),
                "median",
                "the median of [1, 2, 3, 4]",
                name="median",
                arrays={"x": [1.0, 2.0, 3.0, 4.0]},
            ),
        ),
        draw_questions(draw_variance, seed=63),
    ),
]
