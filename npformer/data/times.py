"""Times as people write them: numbers, numbers with a unit or a name, dates, or times of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time
from math import isfinite
from typing import Any

import numpy as np

NUMBER = re.compile(r"([+-]?\d+(?:\.\d*)?)\s*(\D*)", re.DOTALL)
NAMED = re.compile(r"([^\d.+\u2010-\u2015\u2212-]+)(\d+)(\D*)", re.DOTALL)
"""A number with its unit; a whole number after a name. "t-1" may be 1 or minus 1, and is neither.
"""

BACKWARDS = re.compile(r"[ap]\.?m\.?|bce?|.*\bago", re.IGNORECASE)
"""Units with which a larger number may be an earlier time."""

DAY, HOUR = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d"

EXPECTED = (
    "Expected numbers, or dates and times of one form, such as 2024-02-01, 2024-02-01T09:30 or "
    "09:30, all with a time zone or all without"
)


class TimeError(ValueError):
    """`which` of several times is the first that cannot be put in order with the others."""

    def __init__(self, which: int) -> None:
        super().__init__(f"time {which}. {EXPECTED}")
        self.which = which


def times_of(words: Sequence[str]) -> tuple[list[Any], bool]:
    """Return times that compare as they follow one another, and whether they are times of day.

    All must be of one form; otherwise TimeError.
    """
    known = {word: _time_of(word.strip()) for word in dict.fromkeys(words)}  # series share many
    found = [known[word] for word in words]
    for i, (form, _) in enumerate(found):
        if form is None or form != found[0][0]:
            raise TimeError(i)
    return [value for _, value in found], bool(found) and found[0][0] in OF_DAY


def ranks(values: Sequence[Any]) -> np.ndarray:
    """Return the place of each time among all different ones, (n,)."""
    place = {value: i for i, value in enumerate(sorted(set(values)))}
    return np.array([place[value] for value in values], dtype="int64")


OF_DAY = ("time", True), ("time", False)
"""Forms of times without a day: naive, and aware."""


def _time_of(word: str) -> tuple[Any, Any]:
    """Return the form of a time, which all in a column share, and the time; None for neither."""
    if re.search(r"\d_\d", word):  # Python reads over the line: 1_11 would come after 10_1
        return None, None
    with suppress(ValueError):
        return "number", int(word)  # with all its digits
    with suppress(ValueError):
        return ("number", number) if isfinite(number := float(word)) else (None, None)
    if (match := NUMBER.fullmatch(word)) and not BACKWARDS.fullmatch(match[2]):
        return ("number", match[2]), float(match[1]) if "." in match[1] else int(match[1])
    if match := NAMED.fullmatch(word):
        return ("named", match[1], match[3]), int(match[2])
    # More digits of a second than six are not read by the library.
    rest = match[1].rstrip("0") if (match := re.search(r"[.,]\d{6}(\d+)", word)) else ""
    with suppress(ValueError):  # no such day, or hour
        if re.fullmatch(r"\d{4}-\d\d", word):
            return "month", date.fromisoformat(f"{word}-01")
        if re.fullmatch(DAY, word):
            return "date", date.fromisoformat(word)
        if re.match(f"{DAY}[Tt ]{HOUR}", word):
            moment = datetime.fromisoformat(word)
            return ("moment", moment.tzinfo is None), (moment, rest)
        if re.match(HOUR, word):
            of_day = time.fromisoformat(word)
            return ("time", of_day.tzinfo is None), (of_day, rest)
    return None, None
