"""A wrong constant factor in words: 3 times the derivative, and 3 is the batch size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

CLOSE = 1e-4
"""How near a factor must be to a number to be taken for it, as a share of that number."""

AXES = {
    1: ("the length of {}",),
    2: ("the batch size", "the number of features"),
    3: ("the batch size", "the length", "the number of features"),
}
"""What the axes of the first input are called, by how many it has."""

AXES_OF_IDS = {1: ("the number of ids",), 2: ("the batch size", "the length")}
"""The same for whole numbers, such as token ids."""

PLAIN_TWO = ", or it is a plain 2, as of a square: other sizes tell"
"""What is said besides where a factor of 2 or 1/2 may be a size."""

MOST_NAMES = 3
"""The most sizes that are said of one factor, where several are equal."""

SIMPLE = 100
"""The largest denominator of a factor that is written as a fraction."""


def write_factor(
    factor: float, inputs: Mapping[str, np.ndarray], numbers: Mapping[str, float]
) -> str:
    """Return in words what a gradient is that is this many times the derivative.

    Parameters
    ----------
    factor : float
    inputs : mapping of str to array
        All arrays of the function by name. The first is the one that has a batch axis.
    numbers : mapping of str to float
        Its other settings, such as dropout's p and the number of heads.
    """
    if math.isclose(factor, -1.0, rel_tol=CLOSE):
        return "backward is minus the derivative: its sign is wrong"
    sign = "minus " if factor < 0.0 else ""
    if any(math.isclose(abs(factor), two, rel_tol=CLOSE) for two in (0.5, 2.0)):
        return f"backward is {sign}{_write_two(abs(factor), inputs, numbers)}"
    reasons = _reasons(abs(factor), inputs, numbers)
    if not reasons:
        return f"backward is {sign}{_write_number(abs(factor))} the derivative"
    meanings = " and ".join(reason.words for reason in reasons[:MOST_NAMES])
    return f"backward is {sign}{reasons[0].written} the derivative; {meanings}"


def _write_two(
    factor: float, inputs: Mapping[str, np.ndarray], numbers: Mapping[str, float]
) -> str:
    """Return what a factor of 2 or 1/2 may be: a size, the root of 4, or no size at all.

    Small numbers coincide: a 2 that is missing in front of a square looks like a batch of two.
    """
    written = f"{_write_number(factor)} the derivative"
    reasons = [
        reason.words
        for kind in _kinds_of_reasons(inputs, numbers)
        for reason in kind
        if math.isclose(factor, reason.number, rel_tol=CLOSE)
    ]
    if not reasons:
        return written
    causes = " or ".join(reasons[:MOST_NAMES])
    return f"{written}; {causes}{PLAIN_TWO}"


def is_known_factor(
    factor: float, inputs: Mapping[str, np.ndarray], numbers: Mapping[str, float]
) -> bool:
    """Return whether a factor is one that has a reason: -1, 2, 1/2, or made of sizes."""
    simple = any(math.isclose(abs(factor), known, rel_tol=1e-6) for known in (0.5, 1.0, 2.0))
    return simple or bool(_reasons(abs(factor), inputs, numbers))


class Reason(NamedTuple):
    """A number that a factor may be, and why."""

    number: float
    written: str  # the number, followed by "times" or "of"
    words: str


def _reasons(
    factor: float, inputs: Mapping[str, np.ndarray], numbers: Mapping[str, float]
) -> list[Reason]:
    """Return what explains a positive factor: the simplest kind of reason that does."""
    for kind in _kinds_of_reasons(inputs, numbers):
        reasons = [reason for reason in kind if math.isclose(factor, reason.number, rel_tol=CLOSE)]
        if reasons:
            return reasons
    return []


def _kinds_of_reasons(
    inputs: Mapping[str, np.ndarray], numbers: Mapping[str, float]
) -> Iterator[list[Reason]]:
    """Yield reasons of one kind, the most likely kinds first."""
    yield [reason for name, p in numbers.items() for reason in _reasons_of_dropout(name, p)]
    main, others = (
        [(name, n) for name, n in sizes if n > 1]
        for sizes in (_main_sizes(inputs), _other_sizes(inputs, numbers))
    )
    yield [reason for name, n in main for reason in _reasons_of_size(name, n)]
    yield [reason for name, n in main for reason in _reasons_of_root(name, n)]
    of_sizes = [reason for name, n in others for reason in _reasons_of_size(name, n)]
    yield of_sizes + [reason for name, n in others for reason in _reasons_of_root(name, n)]
    yield list(_reasons_of_counts(inputs))


def _reasons_of_size(name: str, n: int) -> list[Reason]:
    words = f"{n} is {name}"
    return [Reason(float(n), f"{n} times", words), Reason(1.0 / n, f"1/{n} of", words)]


def _reasons_of_counts(inputs: Mapping[str, np.ndarray]) -> Iterator[Reason]:
    """Yield quotients of how many labels count, and of all: two means over different counts."""
    for name, labels in inputs.items():
        if labels.dtype.kind not in "iu":
            continue
        values, counts = np.unique(labels, return_counts=True)
        for value, count in zip(values, counts, strict=True):
            rest = labels.size - int(count)
            words = f"{rest} of the {labels.size} {name} are not {value}, so two means are taken"
            if rest:
                yield Reason(rest / labels.size, f"{rest}/{labels.size} of", words)
                yield Reason(labels.size / rest, f"{labels.size}/{rest} times", words)


def _reasons_of_root(name: str, n: int) -> list[Reason]:
    root = math.sqrt(n)
    written, words = f"sqrt({n})", f"{n} is {name}"
    if root == int(root):
        written, words = f"{root:.0f}", f"{root:.0f} is the root of {n}, {name}"
    return [Reason(root, f"{written} times", words), Reason(1.0 / root, f"1/{written} of", words)]


def _reasons_of_dropout(name: str, p: float) -> list[Reason]:
    """Return what factors a probability p may give."""
    if not 0.0 < p < 1.0:
        return []
    value = f"{name} = {p:g}"
    if p == 0.5:  # p is 1 - p, too
        missing = f"that is 1 - p for {value}, so 1 / (1 - p) is missing"
        too_often = f"that is 1 / (1 - p) for {value}, which is there once too often"
        return [Reason(0.5, "1/2 of", missing), Reason(2.0, "2 times", too_often)]
    words = {
        (1.0 - p) / p: f"that is (1 - p) / p for {value}, so 1 / p stands for 1 / (1 - p)",
        1.0 - p: f"that is 1 - p for {value}, so 1 / (1 - p) is missing",
        1.0 / (1.0 - p): f"that is 1 / (1 - p) for {value}, which is there once too often",
        p: f"that is {value}",
        1.0 / p: f"that is 1 / {name} for {value}, a division that is there once too often",
    }
    return [Reason(number, _write_number(number), words[number]) for number in words]


def _main_sizes(inputs: Mapping[str, np.ndarray]) -> Iterator[tuple[str, int]]:
    """Yield the sizes that a mean is likely to divide by: of the first input, and counts."""
    yield from _sizes_of_first(inputs)
    for name, array in inputs.items():
        if array.dtype.kind == "b":
            yield f"the number of entries that {name} keeps", int(array.sum())
        elif array.dtype.kind == "i" and array.min(initial=0) < 0:
            yield f"the number of {name} that are not negative", int((array >= 0).sum())


def _sizes_of_first(inputs: Mapping[str, np.ndarray]) -> Iterator[tuple[str, int]]:
    """Yield the sizes of the first input, their products, and how they are called."""
    for name, array in inputs.items():
        table = AXES if array.dtype.kind == "f" else AXES_OF_IDS
        names = [text.format(name) for text in table.get(array.ndim, ())]
        names = names or [f"{name}.shape[{axis}]" for axis in range(array.ndim)]
        yield from _products(names, array.shape)
        return


def _products(names: Sequence[str], shape: Sequence[int]) -> Iterator[tuple[str, int]]:
    for count in range(1, len(shape) + 1):
        for axes in combinations(range(len(shape)), count):
            product = math.prod(shape[axis] for axis in axes)
            if count == 1 or all(shape[axis] > 1 for axis in axes):
                yield " times ".join(names[axis] for axis in axes), product


def _other_sizes(
    inputs: Mapping[str, np.ndarray], numbers: Mapping[str, float]
) -> Iterator[tuple[str, int]]:
    """Yield the sizes of all inputs but the first, and the whole numbers among the settings."""
    for name, array in list(inputs.items())[1:]:
        for axis, n in enumerate(array.shape):
            yield f"{name}.shape[{axis}]", n
        if array.ndim > 1:
            yield f"the number of entries of {name}", array.size
    widths = [array.shape[-1] for array in list(inputs.values())[:1] if array.ndim > 1]
    for name, number in numbers.items():
        if math.isfinite(number) and number == int(number):
            yield from _sizes_of_setting(name, int(number), widths)


def _sizes_of_setting(name: str, n: int, widths: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield a whole number among the settings, and what it divides a width into: heads."""
    yield name, n
    for width in widths:
        if 1 < n < width and width % n == 0:
            yield f"the number of features divided by {name}", width // n


def _write_number(factor: float) -> str:
    """Return a factor as a fraction, if it is a simple one, followed by "times" or "of"."""
    fraction = Fraction(factor).limit_denominator(SIMPLE)
    if 0.0 < abs(factor - 1.0) < 1e-4:
        return f"1 {'+' if factor > 1.0 else '-'} {abs(factor - 1.0):.3g} times"
    if not math.isclose(factor, float(fraction), rel_tol=1e-6) or fraction == 0:
        return f"{factor:.6g} times"
    if fraction.denominator == 1:
        return f"{fraction.numerator} times"
    return f"{fraction} of" if factor < 1.0 else f"{factor:.6g} times"
