"""How good a model of a file is on its test part, compared with baselines."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, NamedTuple

from npformer.cli.common import counted, one_line
from npformer.cli.file_results import compared, scores_of_baselines, worst_mistakes
from npformer.cli.recipes.file_task import Part
from npformer.cli.run_folder import REPORT
from npformer.tasks.estimators import (
    Classifier,
    Estimator,
    TextTranslator,
    TextWriter,
    Translations,
)
from npformer.tasks.estimators.ngrams import ORDERS, ngram_loss
from npformer.tasks.estimators.text_writer import TextScores

MOST_REPORTED = 1000
"""Samples of the test part in the report, which stays small enough to open."""

MOST_COUNTED = 5
"""How many of the worst translations are shown."""


class Measured(NamedTuple):
    """Results: for metrics.json, in words, and the names of files that were written."""

    metrics: dict[str, Any]
    words: str
    files: list[str]


def measure(
    options: argparse.Namespace, model: Estimator, parts: dict[str, Part], path: Path
) -> Measured | None:
    """Measure a model on the part "test". All ranks call this; all but the first get None."""
    found: Measured | None
    if isinstance(model, Classifier):
        found = _classified(options, model, parts, path)
    elif isinstance(model, TextWriter):
        text = parts["test"].samples[0]
        scores = model.evaluate(text, communicator=options.ranks)
        if options.ranks.rank:
            return None
        before = "".join(parts["train"].samples + parts["validation"].samples)
        baselines = {f"n-grams of order {n}": ngram_loss(before, text, n) for n in ORDERS}
        found = Measured(
            {"test": scores.to_dict(), "baselines": baselines}, of_text(scores, baselines), []
        )
    else:
        assert isinstance(model, TextTranslator)
        test = parts["test"]
        translations = model.evaluate(test.samples, test.labels, communicator=options.ranks)
        found = Measured({"test": translations.to_dict()}, of_pairs(translations), [])
    return None if options.ranks.rank else found


def _classified(
    options: argparse.Namespace, model: Classifier, parts: dict[str, Part], path: Path
) -> Measured | None:
    test = parts["test"]
    scores = model.evaluate(test.samples, test.labels, communicator=options.ranks)
    if options.ranks.rank:
        return None
    beside = scores_of_baselines(model, parts)
    kind = "texts" if isinstance(test.samples[0], str) else "series"
    baselines = {
        name: {"accuracy": each.accuracy, "macro_f1": each.macro_f1}
        for name, each in beside.items()
        if each is not None
    }
    many = counted(len(test), f"test {kind}")
    title = f"{Path(options.task).name}: {many}"
    some = test.rows(range(min(len(test), MOST_REPORTED)))
    model.report(
        some.samples, some.labels, path / REPORT, title=title, scores=scores, beside=beside
    )
    words = f"{many}: {scores}\n\n{compared(scores, beside)}\n\n"
    words += worst_mistakes(scores, test, model)
    return Measured({"test": scores.to_dict(), "baselines": baselines}, words, [REPORT])


def of_text(scores: TextScores, baselines: dict[str, float]) -> str:
    """Return how well a text is predicted, and how well counting n-grams does."""
    rows = {"this model": scores.nats, **baselines}
    lines = [
        f"{scores.characters:,} test characters, {scores.tokens:,} tokens, "
        f"perplexity {scores.perplexity:.2f} a token",
        "",
        f"{'':<20}  nats a character  bits a character",
        *(f"{name:<20}  {nats:>16.4f}  {nats / math.log(2):>16.4f}" for name, nats in rows.items()),
        "",
    ]
    better = [name for name, nats in baselines.items() if nats < scores.nats]
    if better:
        lines.append(
            f"Counting is better here: {min(better, key=baselines.__getitem__)}. Train longer, on "
            "more text, or a larger model.\n"
        )
    return "\n".join(lines)


def of_pairs(translations: Translations) -> str:
    """Return how good translations are, and the worst."""
    lines = [f"{translations.n:,} test sources: {translations}", ""]
    if not translations.worst:
        return "\n".join([*lines, "no mistakes\n"])
    lines.append("worst: edits, source, target, written")
    for source, target, written, edits in translations.worst[:MOST_COUNTED]:
        shown = (one_line(text, 40) or "(nothing)" for text in (source, target, written))
        lines.append(f"  {edits}  {'  |  '.join(shown)}")
    return "\n".join(lines) + "\n"
