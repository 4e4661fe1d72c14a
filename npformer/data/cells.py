"""What stands in a cell of a table: a number, or nothing."""

from typing import Any

MISSING = ("", "nan", "nat", "<na>", "null", r"\n")
"""What programs write, in any case, where there is no label; databases write a backslash and N."""


def is_missing(label: str) -> bool:
    """Return whether a label says that there is none."""
    return label.strip().casefold() in MISSING


def as_number(value: Any) -> float | None:
    """Return a value as a number, NaN if it is missing; None for anything else."""
    if isinstance(value, str) and "_" in value:
        return None  # Python's 1_000 is a name elsewhere, such as 2024_05
    try:
        return float("nan" if value is None or value == "" else value)
    except (TypeError, ValueError, OverflowError):
        return None
