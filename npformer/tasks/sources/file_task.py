"""FileTask: a file to train on, how it is read, and how it is split.

A file has one of five kinds: a table of labelled texts, labelled series, one text to continue, a
table of pairs to translate, or texts without labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.cells import is_missing
from npformer.data.headings import FIRST, LAST
from npformer.data.pairs import pairs
from npformer.data.series import (
    SeriesData,
    check_labels_are_at,
    is_series_file,
    read_series,
    series_of_table,
)
from npformer.data.tables import Table, read_table
from npformer.data.text_file import content_of, display_name, read_text
from npformer.tasks.estimators.class_names import ClassNames, rarely_repeat
from npformer.tasks.estimators.pair_split import recall_rows_by_source
from npformer.tasks.estimators.split import find_repeats, recall_rows
from npformer.tasks.sources import data_warnings
from npformer.tasks.sources.file_kinds import KINDS, is_generated, parse_share
from npformer.tasks.sources.gaps import full_rows
from npformer.tasks.sources.numbers_as_labels import check_are_no_numbers
from npformer.tasks.sources.text_lines import has_lines, read_lines, text_files
from npformer.training.storage.drawn import Drawn

GENERATED = 66_000
"""Pairs of a generated task: 1,000 steps of 64, and 2,000 to measure on."""


@dataclass(frozen=True)
class Part:
    """Some samples, with their labels and names if they have some; of one text, its characters.

    `columns` are those of a table of predictions, before the predicted ones.
    """

    samples: Any
    labels: Any = None
    ids: Sequence[str] = ()
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.samples)

    def data(self) -> tuple[Any, ...]:
        """Return what an estimator is fitted to."""
        return (self.samples,) if self.labels is None else (self.samples, self.labels)

    def validation_data(self) -> Any:
        """Return what the estimator takes to validate on; None without samples."""
        if not len(self):
            return None
        return self.samples if self.labels is None else (self.samples, self.labels)

    def rows(self, rows: Sequence[int] | np.ndarray) -> Part:
        """Return some of the samples, with their labels."""
        ids = [self.ids[i] for i in rows] if self.ids else ()
        labels = None if self.labels is None else [self.labels[i] for i in rows]
        return Part([self.samples[i] for i in rows], labels, ids)


@dataclass(frozen=True, kw_only=True)
class FileTask:
    """What to train on, and how to split it.

    Attributes
    ----------
    kind : str
        A name in `KINDS`.
    file : str
        Or the name of a generated task of `npformer.data.pairs`.
    text, label, source, target : str
        Columns of a table.
    id, time : str
        In a table of series, the columns that say which series a row belongs to, and its place.
    features : list of str
        The columns of the features, found by name in every file; None: all others.
    n_columns : int, optional
        How many columns a table of series without a heading has. One with a column less has the
        series without their labels.
    validation, test : str
        A share of the samples, such as "0.1", or another file of the same kind; "0" for none.
    encoding : str
    seed : int
        Decides which samples are in which part.
    keep_repeated : bool
        Whether a sample that repeats an earlier one, with the same label, stays. If so, the same
        sample may be in both training and test.
    skip_empty : bool
        Whether rows with an empty column are left out; otherwise they are an error.
    """

    kind: str
    file: str
    text: str = ""
    label: str = ""
    source: str = "source"
    target: str = "target"
    id: str | None = None
    time: str | None = None
    features: list[str] | None = None
    n_columns: int | None = None
    validation: str = "0"
    test: str = "0.2"
    encoding: str = "utf-8"
    seed: int = 0
    keep_repeated: bool = False
    skip_empty: bool = False

    def __post_init__(self) -> None:
        if [self.file, self.validation, self.test].count("-") > 1:
            raise ValueError("'-', standard input, is given twice; expected one use of it")

    @classmethod
    def from_notes(cls, notes: dict[str, Any], *, check: bool = True) -> FileTask:
        """Return the task that `to_dict` described; `check` that its files are unchanged."""
        settings = dict(notes)
        sums = settings.pop("sha256", {})
        if check and settings["file"] == "-":
            raise ValueError(
                "the model was trained on standard input, of which nothing is kept; expected a "
                "file to measure it on, or - for standard input"
            )
        for file, stated in sums.items() if check else ():
            if not Path(file).exists():
                raise FileNotFoundError(
                    f"{display_name(file)}, on which the model was trained, is missing (looked in "
                    f"{Path.cwd()}); run this where it was trained, or name a file to measure it on"
                )
            if checksum(file) != stated:
                raise ValueError(
                    f"{file} has changed since the training, so its test part cannot be told apart "
                    "from the training part. Name a file with other samples"
                )
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the checksums of the files."""
        known = {"kind", "file", "seed", "n_columns", *KINDS[self.kind].options}
        files = [self.file, *(f for f in (self.validation, self.test) if parse_share(f) is None)]
        sums = {file: checksum(file) for file in files if file == "-" or Path(file).exists()}
        return {n: v for n, v in asdict(self).items() if n in known} | {"sha256": sums}

    def keys(self, part: Part) -> list[Hashable]:
        """Return what distinguishes the samples of a part from others."""
        if self.kind != "series":
            return list(part.samples)
        return [(series.shape[1], series.tobytes()) for series in part.samples]

    def read(self, file: str, *, labelled: bool = True) -> Part:
        """Return the samples of a file, with their labels if `labelled`."""
        if self.kind == "text":
            return Part(read_text(file, encoding=self.encoding))
        if self.kind == "unlabelled" and has_lines(file, [self.text or "text"], self.encoding):
            return Part(read_lines(file, encoding=self.encoding))
        if self.kind == "pairs" and is_generated(file):
            return Part(*pairs(file, GENERATED, self.seed))
        if self.kind == "series":
            return self._series(file, labelled)
        table = read_table(file, encoding=self.encoding, fill_short_rows=self.skip_empty)
        return self.rows_of(table, labelled=labelled)

    def rows_of(self, table: Table, *, labelled: bool = True) -> Part:
        """Return the samples of a table, after checking that none is empty."""
        roles = [*KINDS[self.kind].columns]
        names = [getattr(self, role) for role in roles]
        if len({*names}) < len(names):
            raise ValueError(
                f"the column {names[0]!r} is named for the {roles[0]}s and for the {roles[1]}s; "
                f"expected two. {table.path} has {table.names()}"
            )
        if not labelled:
            return Part(table.texts(names[0], missing=""), columns=table.columns)
        columns = [table.texts(name, missing="") for name in names]
        if self.kind == "texts":  # a word such as NaN is no label
            columns[1] = ["" if is_missing(words) else words.strip() for words in columns[1]]
            data_warnings.doubt_none(columns[1], table.place)
        samples = Part(columns[0], columns[1] if len(columns) > 1 else None)
        rows = full_rows(table, roles, names, columns, skip_empty=self.skip_empty)
        return samples if len(rows) == len(table) else samples.rows(rows)

    def _series(self, file: str, labelled: bool) -> Part:
        if is_series_file(file):
            series = read_series(file, encoding=self.encoding)
            if labelled and series.labels is None:
                raise ValueError(f"{file} has no labels; expected one for each series")
        else:
            table = read_table(file, encoding=self.encoding)
            series = self._series_of_table(table, labelled)
        labels = series.labels if labelled else None
        return Part(series.series, labels, series.ids, {"id": series.ids})

    def _series_of_table(self, table: Table, labelled: bool) -> SeriesData:
        label, features = self.label if labelled else None, self.features
        if self.n_columns and self.id is None and not (labelled or table.has_heading):
            table = self._match_columns(table, self.n_columns)
        if self.id is None and self.label in table.columns:
            label = self.label
            if not labelled:  # nobody asks what the column holds, perhaps nothing
                table = replace(table, columns={**table.columns, label: ["?"] * len(table)})
        if self.id is not None and features is None and not labelled:
            no_features = (self.id, self.time, self.label)  # a column of labels is no feature
            features = [name for name in table.columns if name not in no_features]
        return series_of_table(table, id=self.id, time=self.time, label=label, features=features)

    def _match_columns(self, table: Table, trained: int) -> Table:
        """Return a table without a heading; without labels, its columns have names of steps.

        `trained` is how many columns that of the training had.
        """
        n = len(table.columns)
        if n == trained:
            if self.label in (FIRST, LAST):
                check_labels_are_at(table, self.label)
            return table
        if n + 1 == trained:
            names = [f"t{i}" for i in range(n)]
            columns = dict(zip(names, table.columns.values(), strict=True))
            return Table(table.path, columns, table.lines)
        raise ValueError(
            f"{table.path} has {n} columns and no heading; expected {trained}, as in the "
            f"training, or {trained - 1} without labels. Write the names of the columns "
            "into the first line: t0,t1,t2 for the steps, and label for labels"
        )

    def parts(
        self, all_samples: Part | None = None, drawn: Drawn | None = None
    ) -> tuple[dict[str, Part], str]:
        """Return the parts "train", "validation" and "test", and a sentence on how they were made.

        `all_samples` are split, by default those of the whole file. `drawn` holds the split that a
        run has drawn.
        """
        all_samples = self.read(self.file) if all_samples is None else all_samples
        kind = KINDS[self.kind]
        repeats = ""
        if "keep_repeated" in kind.options and not self.keep_repeated:
            all_samples, repeats = self._drop_repeated(all_samples)
        if "label" in kind.options:
            self._check_labels(all_samples)
        samples_by_name = {"train": all_samples}
        is_split = self.kind == "text"
        for name, share_or_file in (("test", self.test), ("validation", self.validation)):
            share = parse_share(share_or_file)
            if share is None:
                samples_by_name[name] = self._separate(share_or_file, samples_by_name["train"])
            elif share == 0.0 and self.kind != "text":
                samples_by_name[name] = Part([], [])
            else:
                is_split = True
                split = self._split(samples_by_name["train"], share, name, drawn or Drawn())
                samples_by_name["train"], samples_by_name[name] = split
        self._check_labels_of_files(samples_by_name)
        if self.kind == "text" and len(samples_by_name["train"]) < 2:
            raise ValueError(
                f"{len(samples_by_name['train'])} characters of {self.file} are left to train on; "
                "expected more. Use a longer text, or smaller shares for --test and --validation"
            )
        n = {name: f"{len(samples):,}" for name, samples in samples_by_name.items()}
        words = f"{n['train']} {kind.samples} to train on, {n['validation']} for validation, "
        words += f"{n['test']} for testing{repeats}"
        if is_split:
            words += kind.split.format(seed=self.seed)
        return samples_by_name, words

    def _drop_repeated(self, whole: Part) -> tuple[Part, str]:
        """Return a part without samples that repeat an earlier one, and a phrase on how many."""
        labels = [None] * len(whole) if whole.labels is None else whole.labels
        repeats = find_repeats(self.keys(whole), labels)
        if not repeats.any():
            return whole, ""
        words = f"; {repeats.sum():,} that repeat an earlier one are left out"
        return whole.rows(np.flatnonzero(~repeats)), words

    def _check_labels(self, whole: Part) -> None:
        """Raise ValueError for labels that nobody can learn from; warn about doubtful ones."""
        check_are_no_numbers(f"the labels of {display_name(self.file)}", whole.labels)
        ClassNames.of(whole.labels)  # a single class cannot be split
        if words := rarely_repeat(whole.labels):
            raise ValueError(
                f"the column {self.label!r} has {words}. --label COLUMN names another column"
            )
        data_warnings.doubt_several(whole.labels)
        data_warnings.doubt_rare(KINDS[self.kind].samples, whole.labels)
        data_warnings.doubt_labels(KINDS[self.kind].samples, self.keys(whole), whole.labels)

    def _check_labels_of_files(self, parts: Mapping[str, Part]) -> None:
        """Raise ValueError for a label of a separate file that training does not see."""
        if "label" not in KINDS[self.kind].options:
            return
        for name, share_or_file in (("test", self.test), ("validation", self.validation)):
            if parse_share(share_or_file) is None:
                known = ClassNames.of(parts["train"].labels)
                known.numbers(parts[name].labels, f"the labels of {display_name(share_or_file)}")

    def _separate(self, file: str, train: Part) -> Part:
        """Return the samples of another file; warn if some are also trained on."""
        samples = self.read(file)
        if self.kind != "text":
            kind = KINDS[self.kind].samples
            data_warnings.doubt_known(
                kind, self.keys(train), self.keys(samples), display_name(file)
            )
        return samples

    def _split(self, part: Part, share: float, name: str, drawn: Drawn) -> tuple[Part, Part]:
        """Return two parts: by class, by source, or the beginning of a text and its end."""
        if self.kind == "text":
            cut = round(len(part) * (1.0 - share))
            return Part(part.samples[:cut]), Part(part.samples[cut:])
        if self.kind == "pairs":
            larger, smaller = recall_rows_by_source(drawn, name, part.samples, share, self.seed)
        else:
            labels = np.zeros(len(part)) if part.labels is None else np.array(part.labels)
            larger, smaller = recall_rows(drawn, name, labels, share, self.seed)
        return part.rows(larger), part.rows(smaller)


def checksum(file: str) -> str:
    """Return the checksum of a file, of all texts in a folder, or of standard input."""
    return sha256(b"".join(content_of(text_file) for text_file in text_files(file))).hexdigest()
