"""A text to continue, and pairs of texts to translate, as tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer.cli.recipes import doubts
from npformer.cli.recipes.file_task import FileTask, Part, as_share
from npformer.data.pairs import PAIRS, pairs
from npformer.data.tables import kind_of, read_table
from npformer.data.text_file import read_text
from npformer.tasks.estimators.pair_split import held_out_sources

TEXT_FILES = (".txt", ".md")
"""Endings of the names of files that hold one text; ``.gz`` may follow."""

GENERATED = 66_000
"""Pairs of a generated task: 1,000 steps of 64, and 2,000 to measure on."""


class Book(Part):
    """One text, whole or in part."""

    def __len__(self) -> int:
        """Return the number of characters."""
        return sum(map(len, self.samples))

    def data(self) -> tuple[Any, ...]:
        """Return the text."""
        return tuple(self.samples)


def is_text_file(name: str) -> bool:
    """Return whether a file holds one text, judging by the ending of its name."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix != ".gz"]
    return bool(suffixes) and suffixes[-1] in TEXT_FILES


def is_data_file(place: Path) -> bool:
    """Return whether a file is one to train on, judging by the ending of its name."""
    return bool(kind_of(place)) or is_text_file(place.name) or place.suffix.lower() == ".npz"


@dataclass(frozen=True, kw_only=True)
class BookTask(FileTask):
    """A text. Its end is held out: a model is measured on what follows its training text."""

    kind = "text"

    validation: str = "0.1"
    test: str = "0.1"

    def read(self, file: str) -> str:
        """Return the text of a file."""
        text = read_text(file, encoding=self.encoding)
        if len(text) < 2:
            raise ValueError(f"{file} has {len(text)} characters; expected a text")
        return text

    def parts(self) -> tuple[dict[str, Part], str]:
        """Return the parts, one text each."""
        rest, parts = self.read(self.file), dict[str, Part]()
        for name, wanted in (("test", self.test), ("validation", self.validation)):
            share = as_share(wanted)
            if share is None:
                held = self.read(wanted)
            else:
                cut = round(len(rest) * (1.0 - share))
                rest, held = rest[:cut], rest[cut:]
            parts[name] = Book([held] if held else [], [], [])
        if len(rest) < 2:
            raise ValueError(
                f"{len(rest)} characters of {self.file} are left to train on; expected more. Use "
                "a longer text, or smaller shares for --test and --validation"
            )
        parts["train"] = Book([rest], [], [])
        words = (
            f"{len(parts[name]):,} {what}"
            for name, what in (
                ("train", "characters to train on"),
                ("validation", "for validation"),
                ("test", "for testing"),
            )
        )
        return parts, f"{', '.join(words)}, in this order"


@dataclass(frozen=True, kw_only=True)
class PairsTask(FileTask):
    """A table of pairs of texts, or a generated task of `npformer.data.pairs`.

    Attributes
    ----------
    source, target : str
        Their columns. A source may have several targets, each in a row of its own; all of them go
        into the same part.
    skip_empty : bool
        Whether rows without a source or target are left out; otherwise they are an error.
    """

    kind = "pairs"

    source: str = "source"
    target: str = "target"
    skip_empty: bool = False

    def read(self, file: str) -> Part:
        """Return sources and targets."""
        if file in PAIRS and not Path(file).exists():
            found = pairs(file, GENERATED, self.seed)
            return Part(*found, [str(i + 1) for i in range(GENERATED)])
        table = read_table(file, encoding=self.encoding)
        found = table.texts(self.source, missing=""), table.texts(self.target, missing="")
        rows = [i for i, pair in enumerate(zip(*found, strict=True)) if all(map(str.strip, pair))]
        part = Part(*found, [str(i + 1) for i in range(len(found[0]))])
        if len(rows) == len(part):
            return part
        if not self.skip_empty or not rows:
            empty = sorted({*range(len(part))}.difference(rows))
            raise ValueError(
                f"{file}: {len(empty):,} of {len(part):,} rows have no source or no target, the "
                f"first is {table.place(empty[0])}; expected both. Fill them in, or leave them "
                "out with --skip-empty"
            )
        doubts.doubt_gaps(len(part) - len(rows), len(part), file)
        return part.rows(rows)

    def parts(self) -> tuple[dict[str, Part], str]:
        """Return the parts. For shares, the seed draws the sources of each part."""
        parts = {"train": self.read(self.file)}
        made = False
        for name, wanted in (("test", self.test), ("validation", self.validation)):
            share = as_share(wanted)
            rest = parts["train"]
            if share is None:
                parts[name] = self.read(wanted)
                doubts.doubt_known(self.kind, rest.samples, parts[name].samples, wanted)
            elif share > 0.0:
                made, held = True, {*held_out_sources(rest.samples, share, self.seed)}
                rows = [source in held for source in rest.samples]
                parts[name] = rest.rows([i for i, row in enumerate(rows) if row])
                parts["train"] = rest.rows([i for i, row in enumerate(rows) if not row])
            else:
                parts[name] = Part([], [], [])
        words = (
            f"{len(parts[name]):,} {what}"
            for name, what in (
                ("train", "pairs to train on"),
                ("validation", "for validation"),
                ("test", "for testing"),
            )
        )
        return parts, ", ".join(words) + (f"; split by source, seed {self.seed}" if made else "")
