"""How good a model is on its test data, as text, compared with baselines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from npformer.cli.common import counted, one_line
from npformer.cli.predict_file import describe_sample
from npformer.cli.run_folder import REPORT
from npformer.cli.training import Training
from npformer.core.support.tables import align_columns
from npformer.tasks.estimators import (
    Classifier,
    FillerScores,
    Scores,
    TextClassifier,
    TextScores,
    Translations,
    baselines,
)
from npformer.tasks.estimators.ngrams import ORDERS, ngram_loss
from npformer.tasks.estimators.scores import comparison_table
from npformer.tasks.sources.file_task import Part

MOST_COUNTED = 5
"""How many of the worst mistakes and translations are shown."""


def measure(
    training: Training, model: Any, parts: dict[str, Part]
) -> tuple[dict[str, Any], str, list[str]] | None:
    """Measure a model on the part "test". All ranks call this; all but the first get None.

    The results are those for metrics.json, a text about them, and the names of the files
    written.
    """
    test = parts["test"]
    ranks = training.options.ranks
    scores = model.evaluate(*test.data(), communicator=ranks)
    if ranks.rank:
        return None
    metrics: dict[str, Any] = {"test": scores.to_dict()}
    if isinstance(scores, TextScores):
        text = parts["train"].samples + parts["validation"].samples
        counts = {f"n-grams of order {n}": ngram_loss(text, test.samples, n) for n in ORDERS}
        return metrics | {"baselines": counts}, text_in_words(scores, counts), []
    if isinstance(scores, Translations):
        return metrics, pairs_in_words(scores), []
    if isinstance(scores, FillerScores):
        return metrics, describe_fillings(scores, len(test)), []
    beside = _scores_of_baselines(model, parts)
    metrics["baselines"] = {
        name: {"accuracy": baseline.accuracy, "macro_f1": baseline.macro_f1}
        for name, baseline in beside.items()
        if baseline is not None
    }
    size = counted(len(test), "test texts" if isinstance(model, TextClassifier) else "test series")
    title = f"{Path(training.options.task).name}: {size}"
    path = training.path / REPORT
    model.report(*test.data(), path, title=title, scores=scores, beside=beside, overwrite=True)
    words = f"{size}: {scores}\n\n{_comparison(scores, beside)}\n\n{mistakes(scores, test, model)}"
    return metrics, words, [REPORT]


def _scores_of_baselines(model: Classifier, parts: dict[str, Part]) -> dict[str, Scores | None]:
    """Return how good baselines are that know all data but the test part."""
    samples: list[Any] = []
    labels: list[Any] = []
    for name in ("train", "validation"):
        samples_of_part, labels_of_part = parts[name].data()
        samples += samples_of_part
        labels += labels_of_part
    return baselines.score_baselines(model.names, (samples, labels), parts["test"].data())


def _comparison(scores: Scores, beside: dict[str, Scores | None]) -> str:
    """Return a table of the scores of a model and of the baselines, and what follows from it."""
    lines = align_columns(comparison_table({"this model": scores, **beside}), "<>>>>")
    for name, baseline in beside.items():
        if baseline is None:
            lines.append(f'{name} needs: python -m pip install "npformer[sklearn]"')
        elif name == baselines.MAJORITY and scores.macro_f1 <= baseline.macro_f1:
            lines.append("\nThis model is no better than giving every sample the same answer.")
            break
        elif name == baselines.MAJORITY and scores.loss > baseline.loss:
            lines.append("\nIts probabilities are too sure: train on more texts, or for less long.")
        elif name == baselines.TF_IDF and scores.accuracy < baseline.accuracy:
            better = baseline.accuracy - scores.accuracy
            lines.append(
                f"\nCounting words is better here, by {better:.4f}: the order of words adds\n"
                "little, or there were too few texts or epochs to learn it from."
            )
        elif name == baselines.LINEAR and scores.accuracy < baseline.accuracy:
            lines.append(f"\n{name} is better here: use it, or train on more series.")
    return "\n".join(lines)


def mistakes(scores: Scores, test: Part, model: Classifier) -> str:
    """Return the mistakes that the model was surest of."""
    if not (worst := scores.worst[:MOST_COUNTED]):
        return "no mistakes"
    predicted = model.predict([test.samples[i] for i, _ in worst])
    lines = ["worst mistakes: label, predicted, probability of the label, sample"]
    for (i, p), wrong in zip(worst, predicted, strict=True):
        lines.append(f"  {test.labels[i]}  {wrong}  {p:.4f}  {describe_sample(test, i)}")
    return "\n".join(lines)


def text_in_words(scores: TextScores, counts: dict[str, float]) -> str:
    """Return how well a text is predicted, and how well counting n-grams does."""
    rows = {"this model": scores.nats, **counts}
    lines = [
        f"{scores.characters:,} test characters, {scores.tokens:,} tokens, "
        f"perplexity {scores.perplexity:.2f} a token",
        "",
        f"{'':<20}  nats a character  bits a character",
        *(f"{name:<20}  {nats:>16.4f}  {nats / math.log(2):>16.4f}" for name, nats in rows.items()),
    ]
    if counts:
        best = min(counts, key=counts.__getitem__)
        better = scores.nats - counts[best]
        words = "Counting is better here" if better > 0.0 else "Better than counting"
        lines.append(f"\n{words}, by {abs(better):.4f} nats a character: {best}.")
        if better > 0.0:
            lines.append("Train longer, on more text, or a larger model.")
    return "\n".join(lines)


def describe_fillings(found: FillerScores, n: int) -> str:
    """Return how well hidden tokens are guessed, and how well one answer for all would do."""
    perplexity = math.exp(found.loss)
    return (
        f"{counted(n, 'test texts')}, {found.tokens:,} tokens, {found.hidden:,} of them hidden\n"
        f"guessed {found.accuracy:.4f}, loss {found.loss:.4f} nats, perplexity {perplexity:.1f}\n"
        f"always the most frequent token: {found.most_frequent:.4f}"
    )


def pairs_in_words(found: Translations) -> str:
    """Return how good translations are, and the worst."""
    lines = [f"{found.n:,} test sources: {found}", ""]
    lines += ["worst: edits, source, target, written"] if found.worst else ["no mistakes"]
    for source, target, written, edits in found.worst[:MOST_COUNTED]:
        shown = (one_line(text, 40) or "(nothing)" for text in (source, target, written))
        lines.append(f"  {edits}  {'  |  '.join(shown)}")
    return "\n".join(lines)
