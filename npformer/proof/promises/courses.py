"""Parameters and gradients that an optimizer is run with: some ten steps of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Arrays = list[np.ndarray]
Shapes = list[tuple[int, ...]]

STEPS = 10

SMALL = "as small as 1e-8"
"""The name of the course whose gradients are as small as epsilon."""


@dataclass(frozen=True)
class Course:
    """The parameters at the start and the gradients of each step."""

    name: str
    parameters: Arrays
    gradients: list[Arrays]


def courses_for(shapes: Shapes, seed: int, steps: int = STEPS) -> list[Course]:
    """Return the courses for parameters of some shapes."""
    rng = np.random.default_rng(seed)

    def draw() -> Arrays:
        return [rng.normal(size=shape) for shape in shapes]

    def course(name: str, gradients: Callable[[], Arrays]) -> Course:
        return Course(name, draw(), [gradients() for _ in range(steps)])

    constant = draw()
    exponents = [rng.uniform(-4.0, 4.0, shape) for shape in shapes]
    return [
        course("drawn", draw),
        course("constant", lambda: [g.copy() for g in constant]),
        course("of very different sizes", lambda: _scale(draw(), exponents)),
        course(SMALL, lambda: [1e-8 * g for g in draw()]),
        course("partly 0", lambda: _partly_zero(draw())),
        course("0", lambda: [np.zeros(shape) for shape in shapes]),
    ]


def _scale(gradients: Arrays, exponents: Arrays) -> Arrays:
    return [g * 10.0**exponent for g, exponent in zip(gradients, exponents, strict=True)]


def _partly_zero(gradients: Arrays) -> Arrays:
    """Set the first entries to 0, as those of words that no sequence has."""
    for gradient in gradients:
        gradient[:1] = 0.0
    return gradients
