"""Pairs of texts: their checks, and their split, where all targets of a source stay together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.data.tokenizers.tokenizer import check_texts
from npformer.tasks.estimators.class_names import check_as_many
from npformer.training.storage.drawn import Drawn, digest_of


def split_by_source(
    sources: Sequence[str], share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a larger and of a smaller part, each in order.

    The smaller part has a share of the different sources, drawn with a seed; at least one is left.
    """
    different = [*dict.fromkeys(sources)]
    n = min(max(round(share * len(different)), 1), len(different) - 1)
    if n < 1:
        raise ValueError(
            f"{len(different)} different sources are too few to set {share} of them aside"
        )
    held = {different[i] for i in np.random.default_rng(seed).permutation(len(different))[:n]}
    smaller = np.array([source in held for source in sources])
    return np.flatnonzero(~smaller), np.flatnonzero(smaller)


def recall_rows_by_source(
    drawn: Drawn, name: str, sources: Sequence[str], share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of `split_by_source`, or those that a training has drawn already."""
    if drawn.folder is None:
        return split_by_source(sources, share, seed)
    basis = {"sources": digest_of(sources), "share": float(share), "seed": int(seed)}
    return drawn.rows(name, basis, len(sources), lambda: split_by_source(sources, share, seed))


def check_pairs(sources: Any, targets: Any) -> tuple[list[str], list[str]]:
    """Return sources and targets as lists, after checking that there are as many of both."""
    pairs = check_texts(sources, "sources"), check_texts(targets, "targets")
    check_as_many(*pairs, ("sources", "targets"))
    return pairs
