"""Warnings about labelled samples: what is allowed, but most likely a mistake."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

FEW_SAMPLES = 10
"""In a file with fewer samples, a class of one or two is to be expected."""

SEPARATORS = ";|,"
"""What stands between the names of several classes in one label."""

TRAINING_PARTS = ("train", "training")

PARTS = (*TRAINING_PARTS, "test", "testing", "dev", "eval", "val", "valid", "validation", "holdout")
"""Words of a column that says in which part of the data a row is."""

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


def doubt_several(labels: Sequence[Any]) -> None:
    """Warn about labels such as "a;b", if "a" or "b" is a label, too: each would be a class."""
    counts = Counter(label for label in labels if isinstance(label, str))
    combined = [label for label in counts if _joins(label, counts)]
    if combined:
        n = sum(counts[label] for label in combined)
        _warn(
            f"{n:,} of {len(labels):,} labels name several classes, such as {combined[0]!r}: each "
            "such label is taken for a class of its own. Models with several labels for a sample "
            "are not trained here; expected one. Keep the main one, or train a model for each "
            "class, with the labels yes and no"
        )


def _joins(label: str, counts: Mapping[str, int]) -> bool:
    """Return whether one of the names that a label joins is a label, too."""
    names = [
        name for separator in SEPARATORS if separator in label for name in label.split(separator)
    ]
    return any(name.strip() in counts for name in names)


def doubt_rare(kind: str, labels: Sequence[Any]) -> None:
    """Warn about classes of one or two samples: too few to learn from and to measure."""
    counts = Counter(labels)
    rare = [  # `doubt_none` tells of words for no label
        (label, n) for label, n in counts.items() if n <= 2 and str(label).casefold() not in NONE
    ]
    if len(labels) < FEW_SAMPLES or not rare:
        return
    names = ", ".join(f"{label!r} ({n})" for label, n in rare[:5])
    more = f" and {len(rare) - 5:,} more" if len(rare) > 5 else ""
    verb = "classes have" if len(rare) > 1 else "class has"
    _warn(
        f"{len(rare):,} {verb} only one or two {kind}: {names}{more}. A model can hardly learn "
        "them, and the test part may have none of them; expected ten or more of each. Collect "
        "more, give them the label of a similar class, or leave them out"
    )


def doubt_split(
    columns: Mapping[str, Sequence[Any]], used: Iterable[str | None], file: str
) -> None:
    """Warn about a column that says of each row whether it is to train on or to test."""
    used_names = {*used}
    for name, values in columns.items():
        words = {str(value).strip().casefold() for value in values if value not in (None, "")}
        names_parts = len(words) > 1 and words <= {*PARTS} and words & {*TRAINING_PARTS}
        if name not in used_names and names_parts:
            listed = " and ".join(repr(word) for word in sorted(words))
            _warn(
                f"the column {name!r} of {file} says {listed}, and is not used: rows of both are "
                "mixed, and the test part is drawn anew. To keep that split, write the rows of "
                "each into a file: npformer train TRAIN --test TEST"
            )
