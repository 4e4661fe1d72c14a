"""The section of a report on words: what the wide part of a model found in some texts."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np

from npformer.core import to_numpy
from npformer.models.batch import Batch
from npformer.tasks.reports.answers import Answers
from npformer.tasks.reports.elements import section, table
from npformer.tasks.reports.names import Glossary
from npformer.tasks.wide import Wide, WideSequenceClassifier

MOST_WORDS = 5
"""The most that are shown for an answer, and against it."""

LEAST = 0.005
"""What adds less to a logit would read 0.00, so it is not shown."""

WORST = 6


def words_section(models: Sequence[Answers], chosen: Sequence[int]) -> Element | None:
    """Return which words and pairs speak for the answers to some samples and the worst mistakes."""
    tables = [_words_table(judged, chosen) for judged in models]
    if all(table is None for table in tables):
        return None
    return section("words", tables)


def _words_table(judged: Answers, chosen: Sequence[int]) -> Element | None:
    """Return what speaks for the answers of a model; None without a wide part or answers."""
    if not isinstance(judged.model, WideSequenceClassifier) or judged.predicted is None:
        return None
    wide, called = judged.model.wide, judged.called
    labels = np.asarray(judged.samples.y)
    rows = list(dict.fromkeys([*chosen, *judged.worst(WORST)]))
    rows = [i for i in rows if judged.predicted[i] >= 0]
    added = contributions(wide, judged.samples.select(rows), judged.predicted[rows])
    lines = []
    for i, value_of_id in zip(rows, added, strict=True):
        by_value = sorted(value_of_id.items(), key=lambda item: -item[1])
        pro = [(id, value) for id, value in by_value if value >= LEAST]
        contra = [(id, value) for id, value in reversed(by_value) if value <= -LEAST]
        lines.append(
            [
                called.sample(i) or f"sample {i}",
                called.label(labels[i]),
                called.label(judged.predicted[i]),
                _loudest(wide, pro, called),
                _loudest(wide, contra, called),
            ]
        )
    head = ["sample", "label", "answer", "for it", "against it"]
    return table(head, lines, judged.name, words=len(head))


def _loudest(wide: Wide, ranked: Sequence[tuple[int, float]], called: Glossary) -> str:
    """Return the first of some tokens and pairs by name, with what they add."""
    return ", ".join(
        f"{name_of(wide, id, called)} {value:+.2f}" for id, value in ranked[:MOST_WORDS]
    )


def contributions(wide: Wide, batch: Batch, answers: np.ndarray) -> list[dict[int, float]]:
    """Return, for each sample, what each token and pair adds to a class, minus the others' mean."""
    (inputs,) = batch.inputs
    ids, v = (to_numpy(array) for array in wide.weighted(inputs.x, inputs.mask))
    weight = to_numpy(wide.weight.value)
    n = max(weight.shape[1] - 1, 1)
    sums_of_samples = []
    for row, weights, answer in zip(ids, v, answers, strict=True):
        of_answer = weight[row, answer]
        values = weights * (of_answer - (weight[row].sum(axis=1) - of_answer) / n)
        sums: dict[int, float] = {}
        for id, value in zip(row[weights > 0].tolist(), values[weights > 0].tolist(), strict=True):
            sums[id] = sums.get(id, 0.0) + value
        sums_of_samples.append(sums)
    return sums_of_samples


def name_of(wide: Wide, id: int, called: Glossary) -> str:
    """Return the name of a token or a pair."""
    if id < wide.vocab_size:
        return called.token(id)
    return " ".join(
        called.token(token) for token in to_numpy(wide.pairs.value)[id - wide.vocab_size]
    )
