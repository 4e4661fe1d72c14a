"""What the words and pairs of a text add to the logit of a class, in the wide part of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npformer.core import Array, to_numpy
from npformer.tasks.wide.layer import Wide

LEAST = 0.005
"""What adds less to a logit would read 0.00, so it is not shown."""

MOST_WORDS = 8
"""The most words that are shown for an answer, and against it."""

Words = Sequence[tuple[str, Sequence[int]]]
"""The words of a text, each with the places of its tokens."""


def evidence_for(
    wide: Wide,
    x: Array,
    mask: Array | None,
    answers: np.ndarray,
    words_of_samples: Sequence[Words],
) -> list[dict[str, float]]:
    """Return, for each sample, what each word and pair adds to a class, minus the others' mean.

    A word adds what its tokens add, wherever they are; a pair of neighbours counts by itself.

    Parameters
    ----------
    wide : Wide
    x : int array, shape (samples, length)
        Token ids.
    mask : bool array of the same shape, or None
    answers : int array, shape (samples,)
        The class of each sample.
    words_of_samples : sequence of Words
    """
    ids, v = (to_numpy(array) for array in wide.weighted(x, mask))
    weight = to_numpy(wide.weight.value)
    n_others = max(weight.shape[1] - 1, 1)
    sums_of_samples = []
    for row, weights, answer, words in zip(ids, v, answers, words_of_samples, strict=True):
        of_answer = weight[row, answer]
        values = weights * (of_answer - (weight[row].sum(axis=1) - of_answer) / n_others)
        sums_of_samples.append(_sums_by_name(values, weights > 0, words))
    return sums_of_samples


def _sums_by_name(values: np.ndarray, counted: np.ndarray, words: Words) -> dict[str, float]:
    """Return the sums of values by word and pair.

    `values`, (2 length - 1,), are those of the tokens and of the pairs that begin at each token.
    """
    length = (len(values) + 1) // 2
    name_of_place = {place: name for name, places in words for place in places}
    sums: dict[str, float] = {}
    for place in np.flatnonzero(counted).tolist():
        name = name_of_place.get(place, "")
        if place >= length:
            first = place - length
            name = f"{name_of_place.get(first, '')} {name_of_place.get(first + 1, '')}"
        sums[name] = sums.get(name, 0.0) + float(values[place])
    return sums


def strongest(
    values: Mapping[str, float],
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Return the words that add most to an answer, and those that take most from it."""
    by_value = sorted(values.items(), key=lambda item: -item[1])
    pro = [item for item in by_value if item[1] >= LEAST]
    contra = [item for item in reversed(by_value) if item[1] <= -LEAST]
    return pro[:MOST_WORDS], contra[:MOST_WORDS]
