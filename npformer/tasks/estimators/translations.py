"""Translations: how good generated targets are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

N_WORST = 10


@dataclass(frozen=True)
class Translations:
    """What a model wrote for some sources, and how good it is.

    Attributes
    ----------
    n : int
        The number of different sources.
    exact : float
        The share of sources for which it wrote one of their targets.
    edits : float
        Insertions, deletions and substitutions of tokens that turn what was written into the
        nearest target, per token of that target.
    worst : list of (str, str, str, int)
        A source, its nearest target, what was written, and the edits between the two; those with
        the most edits come first. Right answers are left out.
    """

    n: int
    exact: float
    edits: float
    worst: list[tuple[str, str, str, int]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"sources": self.n, "exact": self.exact, "edits": self.edits}

    def __str__(self) -> str:
        """Return a sentence with exact matches and edits."""
        return f"{self.exact:.4f} exact matches, {self.edits:.4f} edits a token"


def translations_of(
    right: Mapping[str, Sequence[str]], written: Sequence[str], split: Callable[..., Any]
) -> Translations:
    """Return how good the written texts are, for sources and their right targets.

    `split` returns the tokens of a text, the units in which edits are counted.
    """
    exact, n_edits, n_tokens = 0, 0, 0
    wrong: list[tuple[str, str, str, int]] = []
    for (source, targets), text in zip(right.items(), written, strict=True):
        if text in targets:
            exact += 1
            n_tokens += len(split(text))
            continue
        tokens = split(text)
        edits, target = min(
            (edit_distance(tokens, split(target_text)), target_text) for target_text in targets
        )
        n_edits, n_tokens = n_edits + edits, n_tokens + len(split(target))
        wrong.append((source, target, text, edits))
    wrong.sort(key=lambda row: -row[3])
    return Translations(len(right), exact / len(right), n_edits / max(n_tokens, 1), wrong[:N_WORST])


def edit_distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return the fewest insertions, deletions and substitutions from one to the other.

    Row by row, the table of Wagner and Fischer (1974): d_ij = min(d_(i-1)j + 1, d_i(j-1) + 1,
    d_(i-1)(j-1) + [one_i != other_j]).
    """
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        before, row = row, [i]
        for j, b in enumerate(other, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
    return row[-1]
