"""Doubts about labelled samples: what is allowed, but most likely a mistake, gives a warning."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any


def doubt_case(labels: Sequence[Any]) -> None:
    """Warn of labels that differ only in case: most likely they are one class."""
    counts = Counter(map(str, labels))
    alike: dict[str, list[str]] = {}
    for name in counts:
        alike.setdefault(name.casefold(), []).append(name)
    for names in alike.values():
        if len(names) > 1:
            listed = " and ".join(f"{name!r} ({counts[name]:,})" for name in sorted(names))
            warnings.warn(f"{listed} differ only in case: one class?", stacklevel=2)


def doubt_known(
    kind: str, trained_on: Iterable[Hashable], measured: Sequence[Hashable], file: str
) -> None:
    """Warn of samples to measure on that were trained on: what is known proves nothing."""
    keys = set(trained_on)
    if known := sum(key in keys for key in measured):
        warnings.warn(
            f"{known:,} of {len(measured):,} {kind} of {file} are also trained on: what is "
            "measured on them is memory. Leave them out, or the result is too good",
            stacklevel=2,
        )


def doubt_features(names: Sequence[str]) -> None:
    """Warn of a feature without a name: a table that was written with the numbers of its rows."""
    for name in names:
        if not name or name.startswith("Unnamed:"):
            warnings.warn(
                f"the column {name!r} is taken for a feature; is it the number of the row? "
                "--features names those that are meant",
                stacklevel=2,
            )
