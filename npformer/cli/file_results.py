"""What the commands say about a classifier of a file: scores, baselines and mistakes."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from npformer.cli import common
from npformer.cli.recipes.doubts import doubt_known
from npformer.cli.recipes.file_task import FileTask, Part, chosen_column, list_of
from npformer.cli.recipes.labelled_tasks import (
    LabelledTask,
    SeriesTask,
    TextTask,
    series_of,
    texts_of,
)
from npformer.cli.recipes.task_notes import task_of_notes, trained_on
from npformer.cli.recipes.writing_tasks import Book, BookTask, PairsTask
from npformer.data.tables import read_table
from npformer.tasks.estimators import (
    Classifier,
    Estimator,
    Scores,
    TextClassifier,
    TextWriter,
    baselines,
)


def scores_of_baselines(classifier: Classifier, parts: dict[str, Part]) -> dict[str, Scores | None]:
    """Return the scores of baselines, which learn from the same samples."""
    names, test = classifier.names, parts["test"]
    samples = [*parts["train"].samples, *parts["validation"].samples]
    y = names.numbers([*parts["train"].labels, *parts["validation"].labels])
    y_test = names.numbers(test.labels)
    found: dict[str, Scores | None] = {
        baselines.MAJORITY: baselines.majority(names.names, y, y_test)
    }
    train, tested = (samples, y), (test.samples, y_test)
    if isinstance(classifier, TextClassifier):
        found[baselines.TF_IDF] = baselines.tf_idf(names.names, train, tested)
    else:
        found[baselines.LINEAR] = baselines.linear(names.names, train, tested)
    return found


def compared(scores: Scores, beside: dict[str, Scores | None]) -> str:
    """Return a table of the scores of a model and of the baselines, and what follows from it."""
    rows = {"this model": scores, **beside}
    lines = [f"{'':<28}  accuracy  macro F1    loss  calibration error"]
    for name, each in rows.items():
        if each is None:
            lines.append(f'{name:<28}  needs: python -m pip install "npformer[sklearn]"')
        else:
            lines.append(
                f"{name:<28}  {each.accuracy:>8.4f}  {each.macro_f1:>8.4f}  {each.loss:>6.4f}  "
                f"{each.calibration_error:>17.4f}"
            )
    majority, words = beside[baselines.MAJORITY], beside.get(baselines.TF_IDF)
    linear = beside.get(baselines.LINEAR)
    if majority is not None and scores.macro_f1 <= majority.macro_f1:
        lines.append("\nThis model is no better than giving every sample the same answer.")
    elif words is not None and scores.accuracy < words.accuracy:
        better = words.accuracy - scores.accuracy
        lines.append(f"\nCounting words is better here, by {better:.4f}: their order adds little,")
        lines.append("or there were too few texts or epochs to learn it from.")
    elif linear is not None and scores.accuracy < linear.accuracy:
        lines.append(f"\n{baselines.LINEAR} is better here: use it, or train on more series.")
    return "\n".join(lines)


def worst_mistakes(scores: Scores, test: Part, classifier: Classifier, n: int = 5) -> str:
    """Return the mistakes that the model was surest of."""
    if not scores.worst:
        return "no mistakes\n"
    chosen = [i for i, _ in scores.worst[:n]]
    predicted = classifier.predict([test.samples[i] for i in chosen])
    lines = ["worst mistakes: label, predicted, probability of the label, sample"]
    for (i, probability), wrong in zip(scores.worst, predicted, strict=False):
        lines.append(f"  {test.labels[i]}  {wrong}  {probability:.4f}  {shown(test, i)}")
    return "\n".join(lines) + "\n"


def shown(part: Part, i: int) -> str:
    """Return a sample in a few words: the beginning of a text, or what a series is called."""
    sample = part.samples[i]
    if isinstance(sample, str):
        return common.one_line(sample, 70)
    return f"{common.one_line(part.ids[i], 40)} ({len(sample)} steps)"


def file_task(notes: dict[str, Any]) -> FileTask | None:
    """Return the task in a model's notes, if it was trained on a file; files are not checked."""
    task = notes.get("task")
    return task_of_notes(task, check=False) if isinstance(task, dict) else None


def part_of(
    file: str,
    options: argparse.Namespace,
    task: FileTask | None,
    classifier: Classifier,
    *,
    labelled: bool,
) -> Part:
    """Return the samples of a file: columns as options name them, or as in the training's task."""
    encoding = options.encoding or "utf-8"
    if not isinstance(classifier, TextClassifier):
        known = task if isinstance(task, SeriesTask) else SeriesTask(file=file, label="label")
        given: dict[str, Any] = {"encoding": encoding, "features": list_of(options.features)}
        given |= {name: getattr(options, name, None) for name in ("id", "time", "label")}
        changes = {name: value for name, value in given.items() if value is not None}
        return series_of(file, replace(known, **changes), labelled=labelled)
    table = read_table(file, encoding=encoding)
    columns: list[str | None] = []
    for role in ("text", "label") if labelled else ("text",):
        given_name, usual = getattr(options, role), getattr(task, role, None)
        taken = given_name is None and usual in table.columns
        columns.append(usual if taken else chosen_column(table, given_name, role))
    if not labelled:
        return texts_of(table, str(columns[0]), None)
    names: dict[str, Any] = dict(zip(("text", "label"), columns, strict=True))
    return TextTask(file=file, skip_empty=options.skip_empty, **names).of(table)


def held_out_part(options: argparse.Namespace, notes: dict[str, Any], model: Estimator) -> Part:
    """Return the samples of a file with their right answers, or else the test part."""
    task = file_task(notes)
    if options.input is not None:
        if not isinstance(model, Classifier):
            return _written_part(options, task, model)
        part = part_of(options.input, options, task, model, labelled=True)
        if isinstance(task, LabelledTask) and (known := trained_on(notes["task"])) is not None:
            doubt_known(task.kind, task.keys(known), task.keys(part), options.input)
        return part
    if not isinstance(notes.get("task"), dict):
        raise ValueError(
            f"{options.model} does not say which file it was trained on; expected a file to "
            "measure it on"
        )
    test = task_of_notes(notes["task"]).parts()[0]["test"]
    if not len(test):
        raise ValueError(f"{options.model} was trained without a test part; expected a file")
    return test


def _written_part(options: argparse.Namespace, task: FileTask | None, model: Estimator) -> Part:
    """Return the text of a file, or its pairs."""
    file, encoding = options.input, options.encoding or "utf-8"
    if isinstance(model, TextWriter):
        return Book([BookTask(file=file, encoding=encoding).read(file)], [], [])
    table = read_table(file, encoding=encoding)
    names: dict[str, str] = {}
    for role in ("source", "target"):
        given, usual = getattr(options, role), getattr(task, role, None)
        known = given is None and usual in table.columns
        names[role] = str(usual) if known else chosen_column(table, given, role)
    columns: Any = names
    return PairsTask(file=file, encoding=encoding, **columns).read(file)
