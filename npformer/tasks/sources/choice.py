"""From a file, and the options that are given with it, to the task that it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npformer.data.cells import as_number
from npformer.data.series import steps_of
from npformer.data.tables import Table, read_table
from npformer.tasks.sources.file_task import FileTask
from npformer.tasks.sources.kinds import (
    KINDS,
    OPTIONS,
    USUAL,
    chosen_column,
    is_generated,
    is_text_file,
)
from npformer.tasks.sources.text_lines import has_lines

USUAL_PARTS = {"text": {"test": "0.1", "validation": "0.1"}, "unlabelled": {"test": "0.05"}}
"""What is not trained on, for kinds that differ from the others."""

OF_TASK = ("seed", "validation", "test", "encoding", "keep_repeated", "skip_empty", "id", "time")
"""Options that are a task's as they are."""


def chosen_task(file: str, given: Mapping[str, Any], *, labelled: bool = True) -> FileTask:
    """Return the kind and the columns of a file; `given` are options by name, some of all.

    If not `labelled`, it holds texts without labels, whatever else is in it.
    """
    kind, table = _kind(file, given) if labelled else ("unlabelled", _table_of_texts(file, given))
    for name in OPTIONS:
        if name in given and name not in KINDS[kind].options:
            of = " or ".join(each.words for each in KINDS.values() if name in each.options)
            raise ValueError(
                f"--{name.replace('_', '-')} is given; it is for {of}. {file} is read as "
                f"{KINDS[kind].words.partition(',')[0]}"
            )
    about: dict[str, Any] = USUAL_PARTS.get(kind, {}) | {"kind": kind, "file": file}
    about |= {name: given[name] for name in OF_TASK if name in given}
    if kind == "series":
        about |= _columns_of_series(table, given)
    elif table is not None:
        about |= {role: chosen_column(table, given.get(role), role) for role in KINDS[kind].columns}
    return FileTask(**about)


def _kind(file: str, given: Mapping[str, Any]) -> tuple[str, Table | None]:
    """Return which kind a file is, and the table if it is one."""
    if Path(file).suffix.lower() == ".npz":
        return "series", None
    if is_text_file(file):
        return "text", None
    if is_generated(file):
        return "pairs", None
    table = read_table(file, encoding=given.get("encoding", "utf-8"))
    others = {"text", "source", "target"} & {*given}
    if "id" in given or ("time" in given and not others):
        return "series", table
    rows = None if others else steps_of(table, given.get("label"))
    if rows and any(as_number(table.column(name)[0]) is not None for name in rows[1]):
        return "series", table
    if "source" in given or "target" in given:
        return "pairs", table
    roles = [role for role, names in USUAL.items() if {*names} & {*map(str.lower, table.columns)}]
    named = "text" in given or "label" in given
    return ("pairs" if roles == ["source", "target"] and not named else "texts"), table


def _table_of_texts(file: str, given: Mapping[str, Any]) -> Table | None:
    """Return the table that texts without labels are in; None for a file with a text a line."""
    if not has_lines(file):
        return read_table(file, encoding=given.get("encoding", "utf-8"))
    for name in ("text", "skip_empty"):
        if given.get(name):
            raise ValueError(
                f"--{name.replace('_', '-')} is given and {file} is no table; expected none: each "
                "line of a file of text that is not empty is a text"
            )
    return None


def _columns_of_series(table: Table | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column of the labels, and those of the features in a table in long form."""
    if table is None:
        return {"label": "labels"}
    features = given.get("features")
    if "id" not in given and (found := steps_of(table, given.get("label"))) and found[0]:
        return {"label": found[0], "features": features}
    label = chosen_column(table, given.get("label"), "label")
    own = given.get("id"), given.get("time"), label
    return {"label": label, "features": features or [n for n in table.columns if n not in own]}
