"""What a report on raw samples shows beside the models: scores, baselines, and the samples."""

from collections.abc import Mapping, Sequence
from typing import Any

from npformer.tasks.estimators.scores import Scores
from npformer.tasks.reports.elements import TEXTS

Table = list[list[str]]
"""Rows of cells; the first is the heading."""


def settings_of_report(
    classifier: Any, samples: Sequence[Any], scores: Scores, beside: Mapping[str, Scores | None]
) -> dict[str, Any]:
    """Return arguments of `npformer.report`: names of classes and samples, and its opening."""
    texts = list(samples) if all(isinstance(each, str) for each in samples) else None
    n = len(classifier.models_)
    members = [TEXTS["results"]["members"].format(n=n)] if n > 1 else []
    title = f"A {'text' if texts else 'series'} classifier: its mistakes, and a look inside"
    named = {"title": title, "class_names": classifier.names.words(), "sample_names": texts}
    return named | {"opening": [*members, *_opening(scores, beside)]}


def _opening(scores: Scores, beside: Mapping[str, Scores | None]) -> list[str | Table]:
    """Return a sentence, a table of the model and the baselines, and one of the classes."""
    compared: Table = [["", "accuracy", "macro F1", "loss", "calibration error"]]
    for name, each in {"this model": scores, **beside}.items():
        if each is not None:
            compared.append([name, *(f"{figure:.4f}" for figure in each.figures)])
    classes: Table = [["class", "labels", "precision", "recall", "F1"]]
    for name, n, *shares in scores.by_class():
        classes.append([str(name), f"{n:,}", *(f"{share:.4f}" for share in shares)])
    return [
        f"Measured on {scores.n:,} samples.",
        compared,
        TEXTS["results"]["calibration"],
        classes,
    ]
