"""What stands in a cell of a table: a number, or nothing."""

from typing import Any

MISSING = ("", "nan", "nat", "<na>", "null")
"""What programs write, in any case, where there is no label."""


def is_missing(label: str) -> bool:
    """Return whether a label says that there is none."""
    return label.strip().casefold() in MISSING


def as_number(value: Any) -> float | None:
    """Return a value as a number, NaN if it is missing; None for anything else."""
    try:
        return float("nan" if value is None or value == "" else value)
    except (TypeError, ValueError, OverflowError):
        return None
