"""Files of labelled texts or series, as tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npformer.cli.recipes import doubts
from npformer.cli.recipes.file_task import FileTask, Part, as_share
from npformer.data.series import read_series, series_of_table
from npformer.data.tables import Table, read_table
from npformer.tasks.estimators.class_names import ClassNames
from npformer.tasks.estimators.split import repeated, stratified


@dataclass(frozen=True, kw_only=True)
class LabelledTask(FileTask):
    """Labelled samples.

    Attributes
    ----------
    label : str
        The column of the labels.
    keep_repeated : bool
        Whether a sample that repeats an earlier one, with the same label, stays. If so, the same
        sample may be in both training and test.
    """

    label: str
    keep_repeated: bool = False

    @abstractmethod
    def read(self, file: str) -> Part:
        """Return the samples and labels of a file."""

    def key(self, sample: Any) -> Hashable:
        """Return what distinguishes a sample from others."""
        return sample  # type: ignore[no-any-return]

    def keys(self, part: Part) -> list[Hashable]:
        """Return what distinguishes the samples of a part from others."""
        return [self.key(sample) for sample in part.samples]

    def parts(self) -> tuple[dict[str, Part], str]:
        """Return the parts "train", "validation" and "test", and how they were made, in words."""
        said = []
        whole = self.read(self.file)
        if not self.keep_repeated:
            again = repeated(self.keys(whole), whole.labels)
            if again.any():
                said.append(f"{again.sum():,} that repeat an earlier one are left out")
                whole = whole.rows(np.flatnonzero(~again))
        ClassNames.of(whole.labels)  # a single class cannot be split
        doubts.check_few_classes(self.label, whole.labels)
        parts = {"train": whole}
        doubts.doubt_case(whole.labels)
        doubts.doubt_labels(self.kind, self.keys(whole), whole.labels)
        made = False
        for name, wanted in (("test", self.test), ("validation", self.validation)):
            share = as_share(wanted)
            if share is None:
                parts[name] = self.read(wanted)
                doubts.doubt_known(
                    self.kind, self.keys(parts["train"]), self.keys(parts[name]), wanted
                )
            elif share > 0.0:
                rest, made = parts["train"], True
                larger, smaller = stratified(np.array(rest.labels), share, self.seed)
                parts["train"], parts[name] = rest.rows(larger), rest.rows(smaller)
            else:
                parts[name] = Part([], [], [])
        counts = (
            f"{len(parts[name]):,} {words}"
            for name, words in (
                ("train", f"{self.kind} to train on"),
                ("validation", "for validation"),
                ("test", "for testing"),
            )
        )
        if made:
            said.append(f"split by class, seed {self.seed}")
        return parts, "; ".join([", ".join(counts), *said])


@dataclass(frozen=True, kw_only=True)
class TextTask(LabelledTask):
    """A table of texts.

    Attributes
    ----------
    text : str
        The column of the texts.
    skip_empty : bool
        Whether rows without a text or label are left out; otherwise they are an error.
    """

    kind = "texts"

    text: str
    skip_empty: bool = False

    def read(self, file: str) -> Part:
        """Return the texts and labels of a file."""
        return self.of(read_table(file, encoding=self.encoding))

    def of(self, table: Table) -> Part:
        """Return the texts and labels of a table, after checking that none is empty."""
        part = texts_of(table, self.text, self.label)
        full = [i for i, text in enumerate(part.samples) if text.strip() and part.labels[i]]
        if self.skip_empty and full:
            doubts.doubt_gaps(len(part) - len(full), len(part), str(table.path))
            return part.rows(full)
        for what, found in (("texts", part.samples), ("labels", part.labels)):
            empty = [i for i, words in enumerate(found) if not words.strip()]
            if empty:
                raise ValueError(
                    f"{table.path}: {len(empty):,} of {len(part):,} {what} are empty, the first is "
                    f"in {table.place(empty[0])}; expected words. Fill them in, or leave them out "
                    "with --skip-empty"
                )
        return part


@dataclass(frozen=True, kw_only=True)
class SeriesTask(LabelledTask):
    """A table of series in long form, or a ``.npz`` file: see `npformer.data.series`.

    Attributes
    ----------
    id, time : str or None
        The columns that say which series a row belongs to, and its place there.
    features : list of str or None
        The columns of the features, found by name in every file; None: all others.
    """

    kind = "series"

    id: str | None = None
    time: str | None = None
    features: list[str] | None = None

    def read(self, file: str) -> Part:
        """Return the series and labels of a file."""
        return series_of(file, self, labelled=True)

    def key(self, sample: np.ndarray) -> Hashable:
        """Return the values of a series, and how many features it has."""
        return sample.shape[1], sample.tobytes()


def texts_of(table: Table, text: str, label: str | None) -> Part:
    """Return the texts of a table, with labels if their column is named; "" if one is missing."""
    texts = table.texts(text, missing="")
    labels: list[Any] = [None] * len(texts)
    if label is not None:
        labels = [words.strip() for words in table.texts(label, missing="")]
    return Part(texts, labels, [str(i + 1) for i in range(len(texts))])


def series_of(file: str, task: SeriesTask, *, labelled: bool) -> Part:
    """Return the series of a file as a task describes it, with labels if `labelled`."""
    if Path(file).suffix.lower() == ".npz":
        found = read_series(file)
    else:
        table = read_table(file, encoding=task.encoding)
        columns = task.features
        for name in columns or ():
            if name not in table.columns:
                raise ValueError(
                    f"{file} has no column {name!r}, which was a feature in training; it has "
                    f"{', '.join(map(repr, table.columns))}"
                )
        if columns is None and not labelled:  # a column of labels is no feature
            columns = [c for c in table.columns if c not in (task.id, task.time, task.label)]
        found = series_of_table(
            table,
            id=task.id,
            time=task.time,
            label=task.label if labelled else None,
            features=columns,
        )
    if labelled and found.labels is None:
        raise ValueError(f"{file} has no labels; expected an array of that name, one per series")
    labels = found.labels if labelled and found.labels is not None else [None] * len(found.ids)
    return Part(found.series, labels, found.ids)
