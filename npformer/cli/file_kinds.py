"""What the options of a command make of a file: a task, and an estimator for it."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from npformer.core import split_names
from npformer.data.tables import Table, read_table
from npformer.data.tokenizers import TOKENIZERS, read_tokenizer
from npformer.models import EncoderConfig
from npformer.tasks.estimators import (
    Estimator,
    SeriesClassifier,
    TextClassifier,
    TextTranslator,
    TextWriter,
)
from npformer.tasks.sources.file_task import FileTask
from npformer.tasks.sources.kinds import KINDS, USUAL, chosen_column, is_generated, is_text_file

ESTIMATORS: dict[str, Any] = {
    "texts": TextClassifier,
    "series": SeriesClassifier,
    "text": TextWriter,
    "pairs": TextTranslator,
}

OPTIONS = sorted(set().union(*(kind.options for kind in KINDS.values())) - {"pooling"})
"""Options that only files have."""

ARGUMENTS = (
    *("seed", "dtype", "backend", "max_len", "pooling", "members"),
    *("vocab_size", "ngrams", "tokenizer", "freeze", "pretrained"),
)
"""Options that are arguments of an estimator; others are settings of its encoder."""

GENERATED: dict[str, Any] = {"test": "0.03", "epochs": 2, "d_model": 64}
"""Options of a generated task of pairs: its pairs are many and easy."""


def given_options(options: argparse.Namespace, names: Any) -> dict[str, Any]:
    """Return those of the named options that were given."""
    return {name: v for name, v in vars(options).items() if name in names and v is not None}


def mixer_setting(words: str) -> str | tuple[str, ...]:
    """Return the mixer that --mixer names, or one for each layer."""
    mixers = split_names(words)
    return mixers[0] if len(mixers) == 1 else tuple(mixers)


def task_of(options: argparse.Namespace) -> FileTask:
    """Return the file and its columns, as the options name them."""
    file = options.task
    kind, table = _kind(options)
    for name in given_options(options, [*OPTIONS, "pooling"]):
        if name not in KINDS[kind].options:
            of = " or ".join(each.words for each in KINDS.values() if name in each.options)
            raise ValueError(
                f"--{name.replace('_', '-')} is given; it is for {of}. {file} is read as "
                f"{KINDS[kind].words.partition(',')[0]}"
            )
    usual: dict[str, Any] = {"text": {"test": "0.1", "validation": "0.1"}}.get(kind, {})
    if kind == "pairs" and table is None:
        usual = {"test": GENERATED["test"]}
    names = ("seed", "validation", "test", "encoding", "keep_repeated", "skip_empty", "id", "time")
    given = {"kind": kind, "file": file} | usual | given_options(options, names)
    if kind == "series":
        label = "labels" if table is None else chosen_column(table, options.label, "label")
        columns = list(table.columns) if table is not None else []
        rest = [name for name in columns if name not in (options.id, options.time, label)]
        given |= {"label": label, "features": list_of(options.features) or rest or None}
    elif table is not None:
        roles = KINDS[kind].columns
        given |= {role: chosen_column(table, getattr(options, role), role) for role in roles}
        if given[roles[0]] == given[roles[1]]:
            raise ValueError(
                f"the column {given[roles[0]]!r} is named for the {roles[0]}s and for the "
                f"{roles[1]}s; expected two. {file} has {', '.join(map(repr, table.columns))}"
            )
    return FileTask(**given)


def _kind(options: argparse.Namespace) -> tuple[str, Table | None]:
    """Return which kind a file is, and the table if it is one."""
    file = options.task
    if Path(file).suffix.lower() == ".npz":
        return "series", None
    if is_text_file(file):
        return "text", None
    if is_generated(file):
        return "pairs", None
    table = read_table(file, encoding=options.encoding or "utf-8")
    if options.id is not None:
        return "series", table
    if options.source is not None or options.target is not None:
        return "pairs", table
    roles = [role for role, names in USUAL.items() if {*names} & {*map(str.lower, table.columns)}]
    named = options.text is not None or options.label is not None
    return ("pairs" if roles == ["source", "target"] and not named else "texts"), table


def list_of(words: str | None) -> list[str] | None:
    """Return the names in a word such as "a,b"."""
    if words is None:
        return None
    names = [name.strip() for name in words.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--features is {words!r}; expected column names, such as a,b")
    return names


def model_for(options: argparse.Namespace, task: FileTask) -> Estimator:
    """Return an untrained estimator with the settings that were given."""
    encoder = {field.name for field in fields(EncoderConfig)}.difference(ARGUMENTS)
    config = given_options(options, encoder)
    given = given_options(options, ARGUMENTS)
    if "freeze" in given:
        given["freeze"] = split_names(options.freeze)
    if options.pretrained is not None:
        wrong = [name for name, value in config.items() if value != options.usual.get(name)]
        wrong += given_options(options, ("tokenizer", "vocab_size", "ngrams"))
        if wrong:
            raise ValueError(
                f"--{wrong[0].replace('_', '-')} is given together with --pretrained, whose folder "
                "decides it; expected only --pretrained"
            )
        left = {n: v for n, v in given.items() if n not in ("dtype", "max_len")}
        return TextClassifier(**left)
    config["mixer"] = mixer_setting(config["mixer"])
    if is_generated(task.file):
        config.setdefault("d_model", GENERATED["d_model"])
    if task.kind == "text" and "max_len" in given:
        config["max_len"] = given.pop("max_len")
    if (name := given.get("tokenizer")) is not None:
        if task.kind == "texts" and name not in TOKENIZERS and Path(name).exists():
            given["tokenizer"] = read_tokenizer(name)
        elif task.kind == "pairs" and len(both := split_names(name)) > 1:
            given["tokenizer"] = both
    estimator: Estimator = ESTIMATORS[task.kind](config, **given)
    return estimator
