"""report: what one or several models do with some samples, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import checks, describe
from npformer.core.support.explained_errors import add_place_to_errors
from npformer.models.batch import Batch
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.reports.answers import judge
from npformer.tasks.reports.elements import TEXTS, document, e, section
from npformer.tasks.reports.mixing import show_mixing
from npformer.tasks.reports.names import Glossary, Names, Words, check_names
from npformer.tasks.reports.tables import (
    WORST,
    mistakes_section,
    models_section,
    show_results,
    tensors_section,
)
from npformer.tasks.reports.word_section import words_section
from npformer.training.data_checks import check_data
from npformer.training.storage.outputs import check_place, write_output

MOST_SAMPLES = 16
"""The most samples whose matrices are shown."""


def report(
    model: SequenceClassifier | Mapping[str, SequenceClassifier],
    x: np.ndarray,
    y: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    path: str | os.PathLike[str] = "report.html",
    samples: int | Sequence[int] = 4,
    token_names: Names | None = None,
    class_names: Names | None = None,
    title: str = "A look inside",
    notes: Mapping[str, str] | None = None,
    batch_size: int = 256,
    sample_names: Sequence[str] | None = None,
    sample_words: Callable[[int], Words] | None = None,
    opening: Sequence[str | Sequence[Sequence[str]]] = (),
    overwrite: bool = False,
) -> Path:
    """Write one HTML file that shows what a model does with labelled data, and return its path.

    It shows the confusion matrix, and the worst mistakes; for some samples, the matrices with which
    every mixer mixes the tokens; mean, spread and cached bytes of every tensor, forward and
    backward; the norm of every parameter's gradient. The report says what it cannot show.

    Parameters
    ----------
    model : SequenceClassifier, or mapping of names to them
        Several models, such as ``{"attention": a, "fourier": b}``, are shown side by side.
    x, y, mask : array
        As in `fit`, on the host. Accuracy, confusions and mistakes are those of all samples.
    path : str or path
    samples : int or list of int
        The samples whose matrices are shown: how many of the first ones, or which; at most 16.
    token_names, class_names : list of str, or mapping of int to str, optional
        Names of token ids and classes; a list has one for each. Names of tokens are shown along
        the axes of the matrices.
    title : str
    notes : mapping of str to str, optional
        Remarks on models, by their names; a single one is called "model".
    batch_size : int
        As in `evaluate`.
    sample_names : list of str, optional
        Names of the samples, such as the texts that they were made from.
    sample_words : callable, optional
        Returns, for the number of a sample, its words, each with the places of its tokens:
        ``[("great", [0, 2]), (".", [1])]``. The matrices then have a row and a column for a word.
    opening : list of str or tables, optional
        What the report begins with: paragraphs, and tables as lists of rows, the heading first.
    overwrite : bool
        Whether to replace an existing file.

    Notes
    -----
    The file has no script and needs no other file and no network. The pictures of matrices have at
    most 2 million pixels in total and 128 x 128 each: for longer sequences, a pixel shows the entry
    of the largest magnitude of a block. There are at most 600 of them, or one for each sample and
    layer if that is more. So a report on a few models is smaller than 5 MB. Token types are 0.
    """
    models = _check_models(model)
    path = check_path_of_report(path, overwrite)
    checks.text("title", title)
    checks.positive("batch_size", batch_size)
    batches = {name: _check_samples(name, model, (x, y, mask)) for name, model in models.items()}
    chosen = sample_numbers(samples, len(x))
    first = next(iter(models.values()))
    called = Glossary(
        check_names("token_names", token_names, first.vocab_size, "token id"),
        check_names("class_names", class_names, first.n_classes, "class"),
        check_names("sample_names", sample_names, len(x), "sample"),
        sample_words,
    )
    notes = {} if notes is None else notes
    checks.instance("notes", notes, Mapping)
    for name, words in notes.items():
        checks.choice("a name in notes", name, models)
        checks.text(f"notes[{name!r}]", words)
    judged = [
        judge(name, model, batches[name], batch_size, chosen, called)
        for name, model in models.items()
    ]
    left_out: list[str] = []
    sections = [
        show_results(opening) if opening else None,
        models_section(judged, notes),
        mistakes_section(judged, left_out),
        words_section(judged, chosen, WORST),
        show_mixing(judged, chosen, left_out),
        tensors_section(judged, chosen),
    ]
    if left_out:
        sections.append(section("not-shown", e("ul", [e("li", words) for words in left_out])))
    places = [element.get("id", "") for element in sections if element is not None]
    links = [e("a", TEXTS[place]["link"], href=f"#{place}") for place in places]
    page = document(title, e("nav", links), e("main", sections))
    write_output(path, page, overwrite=overwrite)
    return path


def check_path_of_report(path: Any, overwrite: Any) -> Path:
    """Check that a report can be written to a path, and return it."""
    place = checks.path("path", path)
    checks.flag("overwrite", overwrite)
    check_place(place, "report.html", overwrite=overwrite)
    return place


def _check_models(model: Any) -> dict[str, SequenceClassifier]:
    """Return models by name."""
    models = dict(model) if isinstance(model, Mapping) else {"model": model}
    if not models:
        raise ValueError("model is an empty mapping; expected at least one model")
    for name, model in models.items():
        checks.text("a name of a model", name)
        if not isinstance(model, SequenceClassifier):
            raise TypeError(
                f"{name} is {describe(model)}; expected a SequenceClassifier, or a mapping "
                "of names to several"
            )
    return models


def _check_samples(name: str, model: SequenceClassifier, data: Any) -> Batch:
    with add_place_to_errors("" if name == "model" else f"for the model {name!r}, "):
        samples = check_data(model, "data", data, model.loss)
        return samples.select(slice(None))


def sample_numbers(samples: Any, n: int) -> list[int]:
    """Return the numbers of the samples to look at."""
    if isinstance(samples, np.ndarray) and samples.ndim == 1:
        samples = list(samples)
    if isinstance(samples, str) or not isinstance(samples, Sequence):
        count = checks.whole("samples", samples, at_least=1, at_most=MOST_SAMPLES)
        return list(range(min(count, n)))
    if not 1 <= len(samples) <= MOST_SAMPLES:
        raise ValueError(
            f"samples has {len(samples)} numbers; expected from 1 to {MOST_SAMPLES}, as many "
            "as fit into one report"
        )
    return [checks.whole("a number in samples", i, at_least=0, at_most=n - 1) for i in samples]
