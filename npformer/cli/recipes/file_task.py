"""FileTask: a file to train on, split into training, validation and test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from npformer.data.tables import Table

USUAL = {
    "text": ("text",),
    "label": ("label",),
    "source": ("source", "word"),
    "target": ("target", "phones"),
}
"""Names of columns that are used if no option names one."""


@dataclass(frozen=True)
class Part:
    """Some samples, their labels and their names."""

    samples: list[Any]
    labels: list[Any]
    ids: list[str]

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.samples)

    def data(self) -> tuple[Any, ...]:
        """Return what a model is fitted to."""
        return self.samples, self.labels

    def rows(self, rows: Sequence[int] | np.ndarray) -> Part:
        """Return some of the samples."""
        return Part(*([each[i] for i in rows] for each in (self.samples, self.labels, self.ids)))


@dataclass(frozen=True, kw_only=True)
class FileTask(ABC):
    """What to train on, and how to split it.

    Attributes
    ----------
    kind : str
        What the samples are called.
    file : str
    validation, test : str
        A share of the samples, such as "0.1", or another file of the same kind; "0" for none.
    encoding : str
    seed : int
        Decides which samples are in which part.
    """

    kind: ClassVar[str]

    file: str
    validation: str = "0"
    test: str = "0.2"
    encoding: str = "utf-8"
    seed: int = 0

    @abstractmethod
    def parts(self) -> tuple[dict[str, Part], str]:
        """Return the parts "train", "validation" and "test", and how they were made, in words."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the checksums of the files."""
        files = [self.file, *(f for f in (self.validation, self.test) if as_share(f) is None)]
        sums = {file: sum_of(Path(file)) for file in files if file != "-" and Path(file).is_file()}
        return {"kind": self.kind, **asdict(self), "sha256": sums}


def as_share(words: str) -> float | None:
    """Return the share that --test or --validation names; None for a file."""
    try:
        share = float(words)
    except ValueError:
        return None
    if not 0.0 <= share < 1.0:
        raise ValueError(
            f"a share to test or validate on is {words}; expected a number of at least 0 and below "
            "1, such as 0.2, or a file"
        )
    return share


def chosen_column(table: Table, given: str | None, role: str) -> str:
    """Return the column that an option names, or the usual one; ValueError lists the columns."""
    if given is not None:
        table.column(given)
        return given
    found = [name for name in table.columns if name.lower() in USUAL[role]]
    if len(found) == 1:
        return found[0]
    raise ValueError(
        f"which column of {table.path} holds the {role}s? It has "
        f"{', '.join(map(repr, table.columns))}. Name it with --{role} COLUMN; a table of texts "
        "needs --text and --label, one of series --id, --time and --label, one of pairs --source "
        "and --target. The first line must hold the column names"
    )


def list_of(words: str | None) -> list[str] | None:
    """Return the names in a word such as "a,b"."""
    if words is None:
        return None
    names = [name.strip() for name in words.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--features is {words!r}; expected column names, such as a,b")
    return names


def sum_of(path: Path) -> str:
    """Return the checksum of a file."""
    return sha256(path.read_bytes()).hexdigest()
