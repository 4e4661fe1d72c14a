"""Pairs of texts: their checks, and their split, where all targets of a source stay together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.tokenizers.tokenizer import checked_texts
from npformer.tasks.estimators.class_names import check_as_many


def parted_by_source(
    sources: list[str], targets: list[str], share: float, seed: int
) -> tuple[list[str], list[str], tuple[list[str], list[str]]]:
    """Split pairs in two; those of one source stay together."""
    held = set(held_out_sources(sources, share, seed))
    rows = [source in held for source in sources]
    parts = [
        [text for text, row in zip(texts, rows, strict=True) if row is wanted]
        for wanted in (False, True)
        for texts in (sources, targets)
    ]
    return parts[0], parts[1], (parts[2], parts[3])


def held_out_sources(sources: Sequence[str], share: float, seed: int) -> list[str]:
    """Return a share of the different sources, drawn with a seed; at least one is left."""
    checks.number("share", share, above=0.0)
    checks.rate("share", share)
    different = [*dict.fromkeys(sources)]
    n = min(max(round(share * len(different)), 1), len(different) - 1)
    if n < 1:
        raise ValueError(
            f"{len(different)} different sources are too few to set {share} of them aside"
        )
    rows = np.random.default_rng(seed).permutation(len(different))[:n]
    return [different[i] for i in np.sort(rows)]


def checked_pairs(sources: Any, targets: Any) -> tuple[list[str], list[str]]:
    """Return sources and targets as lists, after checking that there are as many of both."""
    found = checked_texts(sources, "sources"), checked_texts(targets, "targets")
    check_as_many(*found, ("sources", "targets"))
    return found
