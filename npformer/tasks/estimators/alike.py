"""Labels that are most likely those of one class, but are not written alike."""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

from npformer.data.cells import parse_number

LIKE_LATIN = str.maketrans(
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u0430\u0435\u0441\u043e\u0440\u0455\u0456\u0458\u0443\u0445"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03bf",
    "ABESIJKMHOPCTYXaecopsijyxABEZHIKMNOPTYXo",
)
"""Letters of Cyrillic and Greek that look like those of Latin."""


def look_of(label: Any) -> Hashable:
    """Return what is the same for labels that are one number, or look alike but for their case."""
    words = unicodedata.normalize("NFKC", str(label)).translate(LIKE_LATIN)
    shown = " ".join("".join(_show(c) for c in words).split())
    number = parse_number(shown) if any(c.isdecimal() for c in shown) else None
    if number is not None and isfinite(number):
        return number
    return unicodedata.normalize("NFKC", shown.casefold())


def _show(character: str) -> str:
    """Return a character as it looks: nothing for one without width, one kind of dash or quote."""
    category = unicodedata.category(character)
    if category in ("Cf", "Cc") and not character.isspace():
        return ""
    if category == "Pd" or character == "\u2212":
        return "-"
    return "'" if character in "\u2018\u2019\u02bc" else character


def difference(one: Any, other: Any) -> str:
    """Return how two labels that look the same differ, as the end of a sentence on both."""
    words = str(one), str(other)
    if words[0] == words[1]:
        return "are of different types"
    if isinstance(look_of(one), float):
        return "are the same number"
    composed = [unicodedata.normalize("NFKC", word) for word in words]
    is_case = composed[0] != composed[1] and words[0].casefold() == words[1].casefold()
    return "differ only in case" if is_case else "look alike"


def warn_of_alike(labels: Sequence[Any]) -> None:
    """Warn about labels that differ only in case, are one number, or look alike."""
    counts = Counter(labels)
    in_order = sorted(counts, key=lambda label: (str(look_of(label)), str(label)))
    for _, alike in groupby(in_order, key=look_of):
        first, *other_names = alike
        if other_names:
            names = [f"{describe_name(name)} ({counts[name]:,})" for name in (first, *other_names)]
            what = difference(first, other_names[0])
            warnings.warn(f"{' and '.join(names)} {what}: one class?", stacklevel=3)


def describe_name(label: Any) -> str:
    """Return a label with other characters than those of ASCII by their numbers."""
    return repr(label) if str(label).isascii() else ascii(label)


def hint(label: Any, known: Iterable[Any]) -> str:
    """Return a sentence on the known label that looks like an unknown one; "" if none does."""
    look = look_of(label)
    for other in known:
        if look_of(other) == look:
            return (
                f": {describe_name(label)} and {describe_name(other)} {difference(label, other)}. "
                "Write it as in the training, if it is the same class."
            )
    return ""
