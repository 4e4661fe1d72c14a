"""Warnings about labelled samples: what is allowed, but most likely a mistake."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

NONE = ("none", "n/a", "na", "-", "?")
"""Words for no label, which may be the name of a class."""


def _warn(words: str) -> None:
    warnings.warn(words, stacklevel=3)


def doubt_none(labels: Sequence[str], place: Callable[[int], str]) -> None:
    """Warn about a few labels that may say that there is none: they would be a class."""
    for name in dict.fromkeys(label for label in labels if label.casefold() in NONE):
        if (n := labels.count(name)) <= max(1, len(labels) // 100):
            _warn(
                f"{n:,} of {len(labels):,} labels are {name!r}, the first in "
                f"{place(labels.index(name))}: is it a class? If it means that there is no label, "
                "leave it empty, and the row out with --skip-empty"
            )


def doubt_labels(kind: str, keys: Sequence[Hashable], labels: Sequence[Any]) -> None:
    """Warn about samples that occur with several labels: nobody can tell which is right."""
    of_sample: dict[Hashable, set[Any]] = {}
    for key, label in zip(keys, labels, strict=True):
        of_sample.setdefault(key, set()).add(label)
    unclear = {
        key: labels_of_sample
        for key, labels_of_sample in of_sample.items()
        if len(labels_of_sample) > 1
    }
    if unclear:
        key, labels_of_sample = next(iter(unclear.items()))
        example = f", such as {key[:40]!r}" if isinstance(key, str) else ""
        listed = " and ".join(repr(label) for label in sorted(map(str, labels_of_sample)))
        _warn(
            f"{len(unclear):,} of {len(of_sample):,} different {kind} have more than one "
            f"label{example}: {listed}. No model can be right for all of them"
        )


def doubt_gaps(left_out: int, n: int, file: str) -> None:
    """Warn about rows that --skip-empty leaves out."""
    _warn(f"{left_out:,} of {n:,} rows of {file} have no text or no label: they are left out")


def doubt_known(
    kind: str, trained_on: Iterable[Hashable], measured: Sequence[Hashable], file: str
) -> None:
    """Warn about test samples that were also trained on: they prove nothing."""
    keys = set(trained_on)
    if known := sum(key in keys for key in measured):
        _warn(
            f"{known:,} of {len(measured):,} {kind} of {file} are also trained on: they measure "
            "only what was memorised. Leave them out, or the result will be too good"
        )


def doubt_features(names: Sequence[str]) -> None:
    """Warn about a feature without a name: most likely the row numbers of a table."""
    for name in names:
        if not name or name.startswith(("Unnamed:", "(column ")):
            _warn(
                f"the column {name!r} is taken for a feature; is it the row number? "
                "--features names the columns to use"
            )
