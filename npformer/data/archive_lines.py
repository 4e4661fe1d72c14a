"""A line of a file of the UCR archive: the values of a series, and its label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from npformer.data.cells import parse_number


class ArchiveSeries(NamedTuple):
    """Series of a file, their labels if it has some, and the line of each."""

    series: list[np.ndarray]
    labels: list[str] | None
    lines: list[int]


def error_in_line(path: Path, line: int, problem: str) -> ValueError:
    """Return the error for a line; the problem says what was expected, too."""
    return ValueError(f"{path}: line {line} {problem}")


def values_of_channels(path: Path, line: int, channels: Sequence[Sequence[str]]) -> np.ndarray:
    """Return a series, shape (steps, features), of the words of each feature.

    The words ? and NaN stand for a missing value. Steps at the end at which all features are
    missing are not part of the series: so series of unequal length are made equally long.

    Raises
    ------
    ValueError
        Features differ in length, a word is no number, or a value is missing before the end.
    """
    lengths = [len(words) for words in channels]
    if len(set(lengths)) > 1:
        other = next(i for i, length in enumerate(lengths) if length != lengths[0])
        raise error_in_line(
            path,
            line,
            f"has {lengths[0]} values of feature 0 and {lengths[other]} of feature {other}; "
            "expected as many of each",
        )
    rows = [
        [_value(path, line, feature, step, word) for step, word in enumerate(words)]
        for feature, words in enumerate(channels)
    ]
    values = np.array(rows, dtype="float64").T
    missing = np.isnan(values)
    present_steps = np.flatnonzero(~missing.all(axis=1))
    if len(present_steps) == 0:
        raise error_in_line(path, line, "has no value; expected at least one. Remove the line")
    n_steps = int(present_steps[-1]) + 1
    if missing[:n_steps].any():
        step, feature = np.argwhere(missing[:n_steps])[0].tolist()
        raise error_in_line(
            path,
            line,
            f"lacks the value of feature {feature} at step {step}; expected one, except after the "
            "end of a series. Fill the gap, or remove the line",
        )
    return values[:n_steps]


def _value(path: Path, line: int, feature: int, step: int, word: str) -> float:
    """Return a word as a number; NaN for a missing one."""
    word = word.strip()
    if word == "?":
        return np.nan
    number = parse_number(word) if word else None
    if number is None or np.isinf(number):
        shown = repr(word) if word else "nothing"
        raise error_in_line(
            path,
            line,
            f"has {shown} as the value of feature {feature} at step {step}; expected a number, "
            "or ? for a missing one",
        )
    return number


def check_label(path: Path, line: int, label: str, classes: Sequence[str]) -> str:
    """Return a label as the heading writes it; ValueError if it is none of its classes.

    Upper and lower case are the same, as in aeon. A question mark, of a series whose label is not
    known, is left as it is, and so is each label if the heading lists no classes.
    """
    if label == "?" or not classes:
        return label
    matching = [name for name in classes if name.casefold() == label.casefold()]
    if matching:
        return label if label in matching else matching[0]
    shown = ", ".join(map(repr, classes[:8]))
    raise error_in_line(
        path, line, f"has the label {label!r}; expected one that the heading lists: {shown}"
    )
