"""Parse times as people write them: numbers, also with a unit or a name, dates, times of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time
from math import isfinite
from typing import Any

import numpy as np

NUMBER = re.compile(r"([+-]?\d+(?:\.\d*)?)\s*(\D*)", re.DOTALL)
"""A number with its unit."""

NAMED = re.compile(r"([^\d.+\u2010-\u2015\u2212-]+)(\d+)(\D*)", re.DOTALL)
"""A whole number after a name. "t-1" does not match, because it may mean 1 or minus 1."""

BACKWARDS = re.compile(r"[ap]\.?m\.?|bce?|.*\bago", re.IGNORECASE)
"""Units with which a larger number may be an earlier time."""

DAY, HOUR = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d"

EXPECTED = (
    "Expected numbers, or dates and times in one format, such as 2024-02-01, 2024-02-01T09:30 or "
    "09:30, all with a time zone or all without"
)


class TimeError(ValueError):
    """Times that cannot be sorted: number `which` is the first that does not fit the others."""

    def __init__(self, which: int) -> None:
        super().__init__(f"time {which}. {EXPECTED}")
        self.which = which


def times_of(words: Sequence[str]) -> tuple[list[Any], bool]:
    """Return times as values that can be compared, and whether they are times of day.

    All must have the same format; otherwise TimeError.
    """
    parsed = {word: _parse_time(word.strip()) for word in dict.fromkeys(words)}  # many are equal
    formats = [parsed[word][0] for word in words]
    for i, format in enumerate(formats):
        if format is None or format != formats[0]:
            raise TimeError(i)
    are_times_of_day = bool(formats) and formats[0] in TIME_OF_DAY
    return [parsed[word][1] for word in words], are_times_of_day


def ranks(values: Sequence[Any]) -> np.ndarray:
    """Return the rank of each value among the distinct values, from 0 on: (n,)."""
    rank = {value: i for i, value in enumerate(sorted(set(values)))}
    return np.array([rank[value] for value in values], dtype="int64")


TIME_OF_DAY = ("time", True), ("time", False)
"""Formats of times without a date: without and with a time zone."""


def _parse_time(word: str) -> tuple[Any, Any]:
    """Return the format of a time, which all times of a column share, and its value.

    (None, None) if it is no time.
    """
    if re.search(r"\d_\d", word):  # Python ignores the underscore: 1_11 would come after 10_1
        return None, None
    with suppress(ValueError):
        return "number", int(word)  # with all its digits
    with suppress(ValueError):
        number = float(word)
        return ("number", number) if isfinite(number) else (None, None)
    with_unit = NUMBER.fullmatch(word)
    if with_unit and not BACKWARDS.fullmatch(with_unit[2]):
        digits, unit = with_unit.groups()
        return ("number", unit), float(digits) if "." in digits else int(digits)
    with_name = NAMED.fullmatch(word)
    if with_name:
        return ("named", with_name[1], with_name[3]), int(with_name[2])
    return _parse_date_or_time(word)


def _parse_date_or_time(word: str) -> tuple[Any, Any]:
    """Return the format and the value of a date or a time of day; (None, None) if it is neither."""
    # The library reads six digits of a second; the others are compared as text.
    beyond_microseconds = re.search(r"[.,]\d{6}(\d+)", word)
    rest = beyond_microseconds[1].rstrip("0") if beyond_microseconds else ""
    with suppress(ValueError):  # no such date or hour
        if re.fullmatch(r"\d{4}-\d\d", word):
            return "month", date.fromisoformat(f"{word}-01")
        if re.fullmatch(DAY, word):
            return "date", date.fromisoformat(word)
        if re.match(f"{DAY}[Tt ]{HOUR}", word):
            moment = datetime.fromisoformat(word)
            return ("moment", moment.tzinfo is None), (moment, rest)
        if re.match(HOUR, word):
            time_of_day = time.fromisoformat(word)
            return ("time", time_of_day.tzinfo is None), (time_of_day, rest)
    return None, None
