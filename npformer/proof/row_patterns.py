"""Errors of passes over rows, and of penalties: terms of a norm that are missing."""

from __future__ import annotations

import numpy as np

from npformer.proof.evidence import STRICT, Pattern, WrongGradient

SMALLEST_ROW = 4
"""Rows need more entries than the two numbers that are fitted to them."""


def find_missing_terms(wrong: WrongGradient) -> Pattern | None:
    """Find an error that is, in each row, a constant and a multiple of x: terms of a norm.

    In y = (x - mean) / std, mean and std depend on each x of the row. Without the term of the mean,
    dx is off by a constant in each row; without that of std by a multiple of x - mean.
    """
    x = wrong.evidence.inputs.get(wrong.name)
    if x is None or x.shape != wrong.error.shape or x.dtype.kind != "f":
        return None
    if x.ndim == 0 or x.shape[-1] < SMALLEST_ROW or not wrong.comparable.all():
        return None
    rows = x.reshape(-1, x.shape[-1])
    errors = wrong.error.reshape(rows.shape)
    derivatives = wrong.numeric.reshape(rows.shape)
    centred = rows - rows.mean(axis=1, keepdims=True)
    ones = np.ones_like(rows)
    for columns, words in (
        ((ones,), "a constant in each row is too much: the term of the row's mean is missing"),
        (
            (centred,),
            "a multiple of x - mean in each row is too much: the term of the row's deviation is "
            "missing",
        ),
        (
            (rows,),
            "a multiple of x in each row is too much: the term of the row's root mean square is "
            "missing",
        ),
        (
            (ones, centred),
            "a constant and a multiple of x in each row are too much: the terms of the row's mean "
            "and deviation are missing",
        ),
    ):
        if _is_combination(errors, columns) and not _is_combination(derivatives, columns):
            return Pattern("a term of a norm is missing", words)
    return None


def find_softmax_sum(wrong: WrongGradient) -> Pattern | None:
    """Find an error that is, in each row, a multiple of y: softmax's gradient without its sum.

    It is y (dy - sum(dy y)), so without the sum each row is off by a multiple of y.
    """
    y = wrong.evidence.y
    if y is None or y.shape != wrong.error.shape or not wrong.comparable.all():
        return None
    if y.ndim == 0 or y.shape[-1] < SMALLEST_ROW:
        return None
    products = (wrong.error * y).sum(axis=-1, keepdims=True)
    squares = (y * y).sum(axis=-1, keepdims=True)
    if not squares.all() or not wrong.explains(wrong.numeric + y * products / squares):
        return None
    words = "a multiple of y in each row is too much, as where softmax's sum of dy y is missing"
    return Pattern("softmax's sum", words)


def _is_combination(matrix: np.ndarray, columns: tuple[np.ndarray, ...]) -> bool:
    """Whether each row of a matrix is a combination of the same rows of others."""
    rest = 0.0
    for row, *vectors in zip(matrix, *columns, strict=True):
        basis = np.stack(vectors, axis=1)
        weights, *_ = np.linalg.lstsq(basis, row, rcond=None)
        rest += float(((row - basis @ weights) ** 2).sum())
    return bool(rest**0.5 <= STRICT * float(np.linalg.norm(matrix)))


def _rate_of_step(wrong: WrongGradient, factor: float) -> float | None:
    """Return the learning rate with which a factor is the sum of dy squared; None if there is none.

    With W - rate dy x^T in place of W, W^T dy lacks rate sum(dy^2) x.
    """
    if wrong.evidence.dy is None:
        return None
    square = float((wrong.evidence.dy**2).sum())
    rates = [1.0, *(n for name, n in wrong.evidence.numbers.items() if name in ("lr", "eta"))]
    return next((rate for rate in rates if np.isclose(factor, rate * square, rtol=STRICT)), None)


def find_penalty(wrong: WrongGradient) -> Pattern | None:
    """Find an error that is a multiple of the tensor itself: that of a penalty on its square."""
    x = wrong.evidence.inputs.get(wrong.name)
    if x is None or x.shape != wrong.error.shape or x.dtype.kind != "f":
        return None
    values = x[wrong.comparable]
    square = float(values @ values)
    if values.size < SMALLEST_ROW or not square:
        return None
    factor = float(wrong.error[wrong.comparable] @ values) / square
    if not factor or not wrong.explains(wrong.numeric + factor * x):
        return None
    rate = _rate_of_step(wrong, -factor)
    if rate is not None:
        words = (
            f"sum(dy^2) times {wrong.name} is missing, as where the weights are updated, by a step "
            f"with the learning rate {rate:g}, before they are read"
        )
        return Pattern("updated weights", words)
    more = "too much" if factor > 0.0 else "missing"
    words = f"{abs(factor):.4g} times {wrong.name} itself is {more}, as of a penalty on its square"
    return Pattern("penalty", words)
