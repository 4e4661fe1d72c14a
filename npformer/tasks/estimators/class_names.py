"""ClassNames: labels as people write them, and the numbers that a model uses for them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from npformer.core import describe
from npformer.core.support.wording import did_you_mean
from npformer.data.cells import is_missing
from npformer.data.lists import check_list
from npformer.tasks.estimators import alike

Label = str | int | bool
"""Types that the name of a class may have."""

FEW = 10
"""With fewer samples, labels that rarely repeat prove nothing."""


class ClassNames:
    """The names of classes, sorted; class i is ``names[i]``.

    `names` are at least two different strings, integers or booleans, all of one type.
    """

    def __init__(self, names: Sequence[Label]) -> None:
        self.names: list[Label] = list(names)
        self._number_of = {name: i for i, name in enumerate(self.names)}

    @classmethod
    def of(cls, labels: Iterable[Any]) -> "ClassNames":
        """Check labels, and return the classes that occur in them."""
        listed = plain_labels(labels)
        kinds = {type(label).__name__: label for label in listed}
        if len(kinds) > 1:
            description = ", ".join(f"{label!r} ({kind})" for kind, label in kinds.items())
            raise TypeError(
                f"labels are of several types: {description}; expected one type. Write "
                "[str(label) for label in labels]"
            )
        names = sorted(set(listed))
        if len(names) < 2:
            description = f"only the class {names[0]!r}" if names else "no sample"
            raise ValueError(
                f"labels have {description}; expected at least 2 classes to tell apart. Is it the "
                "right column, and does the file have all its rows?"
            )
        return cls(names)

    def words(self) -> list[str]:
        """Return the names as strings, for display."""
        return [str(name) for name in self.names]

    def numbers(self, labels: Iterable[Any], where: str = "labels") -> np.ndarray:
        """Return the number of each label; raise ValueError for an unknown label."""
        listed = plain_labels(labels, where)
        unknown = Counter(label for label in listed if label not in self._number_of)
        if unknown:
            of = f"of {len(listed)}"
            shown = ", ".join(f"{label!r} ({n} {of})" for label, n in unknown.most_common(3))
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            first = unknown.most_common(1)[0][0]
            hint = alike.hint(first, self.names) or did_you_mean(str(first), self.words())
            raise ValueError(
                f"{where} have {shown}{more}, which training never saw; expected only "
                f"{_names(self.words())}{hint or '.'} Leave these samples out, or train with some "
                "of them"
            )
        return np.array([self._number_of[label] for label in listed], dtype="int64")


def plain_labels(labels: Any, where: str = "labels") -> list[Label]:
    """Return labels as a list of Python's strings, integers and booleans."""
    plain = check_list(where, labels, "a label for each sample")
    for i, label in enumerate(plain):
        if isinstance(label, np.generic):
            plain[i] = label = label.item()
        if isinstance(label, float) and label.is_integer():
            plain[i] = label = int(label)  # a column of a table with gaps holds floats
        if isinstance(label, str) and is_missing(label):
            raise ValueError(
                f"{where}[{i}] is {label!r}, a word for a missing label; expected the name of a "
                "class. Leave the sample out, or give the class another name"
            )
        if not isinstance(label, str | int):
            what = "missing" if label is None or label != label else describe(label)
            raise TypeError(
                f"{where}[{i}] is {what}; expected a string or a whole number, the name of a class"
            )
    return plain


def rarely_repeat(labels: Sequence[Any]) -> str:
    """Return a warning if labels are most likely those of a wrong column; "" if they repeat."""
    n, classes = len(labels), len(set(labels))
    if n < FEW or 2 * classes <= n:
        return ""
    expected = "expected a few classes, with several samples each"
    return f"{classes:,} different labels for {n:,} samples; {expected}"


def _names(words: list[str]) -> str:
    shown = ", ".join(repr(word) for word in words[:8])
    return f"{shown} and {len(words) - 8} more" if len(words) > 8 else shown


def check_as_many(one: Any, other: Any, names: tuple[str, str] = ("samples", "labels")) -> None:
    """Check that there are as many entries in two lists, and at least one."""
    if len(one) != len(other) or len(one) == 0:
        raise ValueError(
            f"the numbers of {' and '.join(names)} are {len(one):,} and {len(other):,}; expected "
            "as many of both, and at least one"
        )
