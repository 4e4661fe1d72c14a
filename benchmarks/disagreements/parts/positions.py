"""Rotary positional encoding and sinusoids."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, draw_questions, pair
from npformer import functional as F
from npformer.layers import Positions

ROTARY = pair(F.rotary, F.rotary_backward, ("x",))


def sinusoids(arrays, settings, dy):
    table = Positions(settings["length"], settings["d_model"], dtype="float64").table.value
    return {"y": table[settings["position"]]}


def draw_rotary(rng: np.random.Generator) -> Question:
    batch, heads, length, half = rng.integers(1, 6, size=4)
    arrays = {
        "x": rng.normal(size=(batch, heads, length, 2 * half)),
        "positions": np.arange(length),
    }
    settings = {
        "theta": float(rng.choice([100.0, 10000.0, 500000.0])),
        "layout": str(rng.choice(["halves", "neighbours"])),
    }
    dy = rng.normal(size=arrays["x"].shape)
    return ask(ROTARY, "rotary", arrays=arrays, settings=settings, dy=dy, dtype="float64")


def draw_sinusoids(rng: np.random.Generator) -> Question:
    length = int(rng.integers(1, 50))
    settings = {
        "length": length,
        "d_model": 2 * int(rng.integers(2, 9)),
        "position": int(rng.integers(0, length)),
    }
    return ask(sinusoids, "sinusoids", arrays={}, settings=settings, dtype="float64")


PARTS = [
    Part(
        "rotary",
        "Rotary positions",
        "Pairs of features turn by angles that grow with the position. What differs is which "
        "features are a pair, and how many digits an angle keeps.",
        (
            ask(
                ROTARY,
                "rotary_default",
                "[1, 2, 3, 4] at position 1",
                name="pairs",
                arrays={"x": [[[[1.0, 2.0, 3.0, 4.0]]]], "positions": [1]},
            ),
            ask(
                ROTARY,
                "rotary_default",
                "ones at position 100,003, 8 features",
                name="far",
                arrays={"x": np.ones((1, 1, 1, 8)), "positions": [100003]},
            ),
            ask(
                ROTARY,
                "rotary_of_second_layer",
                "[1, 2, 3, 4] at position 1 with theta 100, after a layer with theta 10,000",
                name="second_layer",
                arrays={"x": [[[[1.0, 2.0, 3.0, 4.0]]]], "positions": [1]},
                settings={"theta": 100.0},
            ),
        ),
        draw_questions(draw_rotary, seed=15),
    ),
    Part(
        "sinusoids",
        "Sinusoidal positions",
        "sin and cos of p 10000^(-2 i / d). What differs is their order, and the slowest rate.",
        (
            ask(
                sinusoids,
                "sinusoids_default",
                "position 1 of 4, 4 features",
                name="one",
                arrays={},
                settings={"length": 4, "d_model": 4, "position": 1},
            ),
        ),
        draw_questions(draw_sinusoids, seed=16),
    ),
]
