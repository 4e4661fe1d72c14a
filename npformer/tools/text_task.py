"""TextTask: a file of texts and labels, parted into training, validation and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.tables import Table, read_table
from npformer.pipelines.class_names import ClassNames
from npformer.pipelines.split import repeated, stratified

TEXTS, LABELS = ("text",), ("label",)
"""Names of columns that are taken if none is named."""


@dataclass(frozen=True)
class Part:
    """Some of the texts, and their labels."""

    texts: list[str]
    labels: list[str]

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    def rows(self, rows: Sequence[int] | np.ndarray) -> Part:
        """Return some of them."""
        return Part([self.texts[i] for i in rows], [self.labels[i] for i in rows])


@dataclass(frozen=True)
class TextTask:
    """What is trained on, and how it is parted.

    Attributes
    ----------
    file : str
        A table, see `npformer.data.tables.read_table`.
    text, label : str
        Names of its columns.
    validation, test : str
        A share of the texts, such as "0.1", or another file with the same columns; "0" is none.
    encoding : str
    keep_repeated : bool
        Whether a text that occurs again with the same label stays. Then the same text may be in
        the training and in the test.
    skip_empty : bool
        Whether rows without a text are left out; otherwise they are an error.
    seed : int
        Decides which texts are in which part.
    """

    file: str
    text: str
    label: str
    validation: str = "0.1"
    test: str = "0.2"
    encoding: str = "utf-8"
    keep_repeated: bool = False
    skip_empty: bool = False
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the checksums of the files."""
        files = [self.file, *(f for f in (self.validation, self.test) if as_share(f) is None)]
        return asdict(self) | {"sha256": {f: _sum(Path(f)) for f in files if f != "-"}}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TextTask:
        """Return the task that `to_dict` described, after checking that its files are the same."""
        given = dict(values)
        for file, stated in given.pop("sha256").items():
            if not Path(file).is_file():
                raise FileNotFoundError(f"{file}, on which the model was trained, is not there")
            if _sum(Path(file)) != stated:
                raise ValueError(
                    f"{file} has changed since the training, so its test part cannot be told from "
                    "what was trained on. Name a file with other texts"
                )
        return cls(**given)

    def read(self, file: str) -> Part:
        """Return the texts and labels of a file."""
        part = part_of(read_table(file, encoding=self.encoding), self.text, self.label)
        full = [i for i, text in enumerate(part.texts) if text.strip()]
        if len(full) == len(part) or self.skip_empty:
            return part.rows(full)
        first = next(i for i, text in enumerate(part.texts) if not text.strip())
        raise ValueError(
            f"{file}: {len(part) - len(full):,} of {len(part):,} texts are empty, the first is in "
            f"row {first + 1}; expected words. Complete them, or leave them out with --skip-empty"
        )

    def parts(self) -> tuple[dict[str, Part], str]:
        """Return the parts "train", "validation" and "test", and words on how they were made."""
        said = []
        whole = self.read(self.file)
        if not self.keep_repeated:
            again = repeated(whole.texts, whole.labels)
            if again.any():
                said.append(f"{again.sum():,} that repeat an earlier row are left out")
                whole = whole.rows(np.flatnonzero(~again))
        ClassNames.of(whole.labels)  # a single class cannot be parted
        parts = {"train": whole}
        made = []
        for name in ("test", "validation"):
            wanted = self.test if name == "test" else self.validation
            share = as_share(wanted)
            if share is None:
                parts[name] = self.read(wanted)
            elif share > 0.0:
                rest = parts["train"]
                larger, smaller = stratified(np.array(rest.labels), share, self.seed)
                parts["train"], parts[name] = rest.rows(larger), rest.rows(smaller)
                made.append(name)
            else:
                parts[name] = Part([], [])
        counts = (
            f"{len(parts[name]):,} {words}"
            for name, words in (
                ("train", "to train on"),
                ("validation", "for validation"),
                ("test", "for the test"),
            )
        )
        if made:
            said.append(f"parted by class and seed {self.seed}")
        return parts, "; ".join([", ".join(counts), *said])


def as_share(words: str) -> float | None:
    """Return the share that --test or --validation names; None for a file."""
    try:
        share = float(words)
    except ValueError:
        return None
    if not 0.0 <= share < 1.0:
        raise ValueError(
            f"the share is {words}; expected a number from 0 up to, not including, 1, or a file"
        )
    return share


def part_of(table: Table, text: str, label: str) -> Part:
    """Return two columns of a table."""
    return Part(table.texts(text), table.texts(label))


def chosen_column(table: Table, given: str | None, usual: Sequence[str], option: str) -> str:
    """Return the column that an option names, or the usual one; ValueError says what there is."""
    if given is not None:
        table.column(given)
        return given
    found = [name for name in table.columns if name.lower() in usual]
    if len(found) == 1:
        return found[0]
    raise ValueError(
        f"which column of {table.path} is it? It has {', '.join(map(repr, table.columns))}. Name "
        f"one with {option}"
    )


def _sum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
