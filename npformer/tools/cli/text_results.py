"""What the commands say of a classifier of texts: scores, baselines beside them, and mistakes."""

from __future__ import annotations

import argparse
from typing import Any

from npformer.data.tables import read_table
from npformer.pipelines import Scores, TextClassifier, baselines
from npformer.tools.cli import common
from npformer.tools.text_task import (
    LABELS,
    TEXTS,
    Part,
    TextTask,
    chosen_column,
    part_of,
)


def scores_of_baselines(
    classifier: TextClassifier, parts: dict[str, Part]
) -> dict[str, Scores | None]:
    """Return the scores of baselines, which learn from the same texts."""
    names, test = classifier.names, parts["test"]
    texts = [*parts["train"].texts, *parts["validation"].texts]
    y = names.numbers([*parts["train"].labels, *parts["validation"].labels])
    y_test = names.numbers(test.labels)
    return {
        baselines.MAJORITY: baselines.majority(names.names, y, y_test),
        baselines.TF_IDF: baselines.tf_idf(names.names, (texts, y), (test.texts, y_test)),
    }


def compared(scores: Scores, beside: dict[str, Scores | None]) -> str:
    """Return a table of a model's scores and those of the baselines, and what follows from it."""
    rows = {"this model": scores, **beside}
    lines = [f"{'':<28}  accuracy  macro F1"]
    for name, each in rows.items():
        if each is None:
            lines.append(f'{name:<28}  needs: python -m pip install "npformer[sklearn]"')
        else:
            lines.append(f"{name:<28}  {each.accuracy:>8.4f}  {each.macro_f1:>8.4f}")
    majority, words = beside[baselines.MAJORITY], beside[baselines.TF_IDF]
    if majority is not None and scores.macro_f1 <= majority.macro_f1:
        lines.append("\nThis model is no better than the same answer to every text.")
    elif words is not None and scores.accuracy < words.accuracy:
        better = words.accuracy - scores.accuracy
        lines.append(f"\nCounting words is better here, by {better:.4f}: their order adds little,")
        lines.append("or there are too few texts to learn it from.")
    return "\n".join(lines)


def worst_mistakes(scores: Scores, test: Part, classifier: TextClassifier, n: int = 5) -> str:
    """Return the mistakes of which the model was surest."""
    if not scores.worst:
        return "no mistakes\n"
    chosen = [i for i, _ in scores.worst[:n]]
    predicted = classifier.predict([test.texts[i] for i in chosen])
    lines = ["worst mistakes: label, predicted, probability of the label, text"]
    for (i, probability), wrong in zip(scores.worst, predicted, strict=False):
        text = common.one_line(test.texts[i], 70)
        lines.append(f"  {test.labels[i]}  {wrong}  {probability:.4f}  {text}")
    return "\n".join(lines) + "\n"


def text_part(notes: Any, options: argparse.Namespace) -> Part:
    """Return the labelled texts of a table, or of the test part that a model's notes speak of."""
    stated = notes if isinstance(notes, dict) else {}
    if options.input is not None:
        table = read_table(options.input, encoding=options.encoding or "utf-8")
        columns = [
            str(stated[name])
            if given is None and stated.get(name) in table.columns
            else chosen_column(table, given, usual, f"--{name} COLUMN")
            for name, given, usual in (
                ("text", options.text, TEXTS),
                ("label", options.label, LABELS),
            )
        ]
        return part_of(table, *columns)
    if not stated:
        raise ValueError(
            f"{options.model} does not say which file it was trained on; expected a table to "
            "measure it on"
        )
    test = TextTask.from_dict(stated).parts()[0]["test"]
    if not len(test):
        raise ValueError(f"{options.model} was trained without a test part; expected a table")
    return test
