"""Cells of a table: numbers and missing values."""

from typing import Any

MISSING = ("", "nan", "nat", "<na>", "null", r"\n")
"""How programs mark a missing label, in upper or lower case; databases write a backslash and N."""


def is_missing(label: str) -> bool:
    """Return whether a label is missing."""
    return label.strip().casefold() in MISSING


def parse_number(value: Any) -> float | None:
    """Return a value as a number, NaN if it is missing; None for anything else."""
    if isinstance(value, str) and "_" in value:
        return None  # Python reads 1_000 as a number; in a table it is a name, such as 2024_05
    try:
        return float("nan" if value is None or value == "" else value)
    except (TypeError, ValueError, OverflowError):
        return None
