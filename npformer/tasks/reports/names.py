"""Names of tokens, classes and samples in a report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.core.support.wording import shorten_names
from npformer.data.lists import check_list

LONGEST = 40
"""The most characters of a name that are shown."""

LONGEST_SAMPLE = 400
"""The most characters of a sample's name that are shown."""

Words = Sequence[tuple[str, Sequence[int]]]
"""The words of a text, each with the places of its tokens."""

Names = Mapping[int, str] | Sequence[str]


@dataclass(frozen=True)
class Glossary:
    """Names of token ids, classes and samples, by number, and the words of samples."""

    tokens: Mapping[int, str] = field(default_factory=dict)
    classes: Mapping[int, str] = field(default_factory=dict)
    samples: Mapping[int, str] = field(default_factory=dict)
    words_of_sample: Callable[[int], Words] | None = None

    def words(self, i: int, ids: np.ndarray) -> Words:
        """Return the words of a sample, with the places of their tokens; else each token."""
        if self.words_of_sample is not None:
            return self.words_of_sample(int(i))
        return [(self.token(id), [place]) for place, id in enumerate(ids)]

    def sample(self, i: int) -> str:
        """Return the name of a sample, cut if it is long; "" if it has none."""
        return _cut(self.samples.get(int(i), ""), LONGEST_SAMPLE)

    def token(self, number: Any) -> str:
        """Return the name of a token id, or the id if it has none."""
        return _cut(self.tokens.get(int(number), str(int(number))))

    def label(self, number: Any) -> str:
        """Return the name of a class, or its number; "none" for no label or no prediction."""
        number = int(number)
        return "none" if number < 0 else self._short_classes.get(number, str(number))

    @cached_property
    def _short_classes(self) -> dict[int, str]:
        """The names of classes, cut so that they stay different."""
        short = shorten_names(list(self.classes.values()), LONGEST)
        return dict(zip(self.classes, short, strict=True))


def check_names(argument: str, names: Any, n: int | None, of: str) -> dict[int, str]:
    """Check names, and return them by number; None for no names.

    `n` is how many names a sequence must have, and `of` says what they name.
    """
    if names is None:
        return {}
    if n is None:
        raise ValueError(f"{argument} is given, and the models have no {of}s; leave it out")
    if not isinstance(names, Mapping):
        names = check_list(
            argument, names, f"a name for each {of}, or a mapping of numbers to names"
        )
        if len(names) != n:
            raise ValueError(
                f"{argument} has {len(names)} names; expected {n}, one for each {of}. A mapping "
                "may leave some out"
            )
        names = dict(enumerate(names))
    for number, name in names.items():
        checks.whole(f"a key of {argument}", number, at_least=0, at_most=n - 1)
        checks.text(f"{argument}[{number}]", name)
    return {int(number): name for number, name in names.items()}


def _cut(name: str, most: int = LONGEST) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
