"""Kinds of files to train on, and the columns of tables."""

from __future__ import annotations

import importlib.resources
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from npformer.data.pairs import PAIRS
from npformer.data.series import is_series_file
from npformer.data.tables import Table, table_format
from npformer.tasks.estimators import (
    SeriesClassifier,
    TextClassifier,
    TextFiller,
    TextTranslator,
    TextWriter,
)


class Kind(NamedTuple):
    """A row of ``kinds.toml``, and the class of its models."""

    words: str
    columns: dict[str, list[str]]
    samples: str
    split: str
    options: list[str]
    estimator: type[Any]


TABLE = importlib.resources.files("npformer.tasks.sources") / "file_kinds.toml"

ESTIMATORS = {
    "texts": TextClassifier,
    "series": SeriesClassifier,
    "text": TextWriter,
    "pairs": TextTranslator,
    "unlabelled": TextFiller,
}

KINDS = {
    name: Kind(**row, estimator=ESTIMATORS[name])
    for name, row in tomllib.loads(TABLE.read_text("utf-8")).items()
}

OPTIONS = sorted(set().union(*(kind.options for kind in KINDS.values())))
"""Options of all kinds."""

USUAL = {role: names for kind in KINDS.values() for role, names in kind.columns.items()}
"""Names of columns that are used if no option names one."""

TEXT_FILES = (".txt", ".md")
"""Endings of the names of files that hold one text; ``.gz`` may follow."""


def is_generated(file: str) -> bool:
    """Return whether a word names a generated task of pairs."""
    return file in PAIRS and not Path(file).exists()


def is_text_file(name: str) -> bool:
    """Return whether a file holds one text, judging by the ending of its name."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix != ".gz"]
    return bool(suffixes) and suffixes[-1] in TEXT_FILES


def is_data_file(place: Path) -> bool:
    """Return whether a file is one to train on, judging by the ending of its name."""
    return bool(table_format(place)) or is_text_file(place.name) or is_series_file(place)


def parse_share(words: str) -> float | None:
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


def choose_column(table: Table, given: str | None, role: str) -> str:
    """Return the column that an option names, or the usual one; ValueError lists the columns."""
    if given is not None:
        table.column(given)
        return given
    matching = [name for name in table.columns if name.lower() in USUAL[role]]
    if len(matching) == 1:
        return matching[0]
    if not table.has_heading:
        raise ValueError(
            f"where does {table.path} have its labels? It has no heading, and neither its first "
            "nor its last column has a few whole numbers. Name it: --label first, or --label "
            "last; or write the names of the columns, such as label,t0,t1, into the first line"
        )
    raise ValueError(
        f"which column of {table.path} holds the {role}s? It has "
        f"{table.names()}{table.hint_at_missing_heading()}. Name it with --{role} COLUMN; a table "
        "of texts needs --text and --label, one of series --id, --time and --label, one of pairs "
        "--source and --target. The first line must hold the column names"
    )
