"""How npformer train reads a file, by its options: as a task, and an untrained model for it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from npformer.cli.recipes.file_task import USUAL, FileTask, chosen_column, list_of
from npformer.cli.recipes.labelled_tasks import SeriesTask, TextTask
from npformer.cli.recipes.writing_tasks import BookTask, PairsTask, is_text_file
from npformer.core import split_names
from npformer.data.pairs import PAIRS
from npformer.data.tables import Table, read_table
from npformer.data.tokenizers import TOKENIZERS
from npformer.models import EncoderConfig
from npformer.tasks.estimators import (
    Estimator,
    SeriesClassifier,
    TextClassifier,
    TextTranslator,
    TextWriter,
)

ENCODER = {field.name for field in fields(EncoderConfig)}

OF_ALL = {"test", "validation", "encoding", "max_len", "patience"}
OF_CLASSES = {"label", "members", "pooling", "class_weight", "keep_repeated"}

OPTIONS_OF: dict[str, set[str]] = {
    "texts": OF_ALL
    | OF_CLASSES
    | {"text", "tokenizer", "vocab_size", "ngrams", "skip_empty", "pretrained", "freeze"},
    "series": OF_ALL | OF_CLASSES | {"id", "time", "features"},
    "text": OF_ALL | {"tokenizer", "vocab_size"},
    "pairs": OF_ALL | {"source", "target", "tokenizer", "vocab_size", "skip_empty"},
}
"""Options that only some kinds of files have."""

WORDS = {
    "texts": "texts with labels",
    "series": "series, from a table with --id",
    "text": "a file with one text",
    "pairs": "pairs, from a table with --source and --target",
}

OPTIONS = sorted(set().union(*OPTIONS_OF.values()) - {"pooling"})
"""Options that only files have."""

GENERATED: dict[str, Any] = {"test": "0.03", "epochs": 2, "d_model": 64}
"""Options of a generated task of pairs: its pairs are many and easy."""


def kind_of_file(options: argparse.Namespace) -> tuple[str, Table | None]:
    """Return which kind of `OPTIONS_OF` a file is, and the table if it is one."""
    file = options.task
    if Path(file).suffix.lower() == ".npz":
        return "series", None
    if is_text_file(file):
        return "text", None
    if file in PAIRS and not Path(file).exists():
        return "pairs", None
    table = read_table(file, encoding=options.encoding or "utf-8")
    if options.id is not None:
        return "series", table
    if options.source is not None or options.target is not None:
        return "pairs", table
    roles = [role for role, names in USUAL.items() if {*names} & {*map(str.lower, table.columns)}]
    given = options.text is not None or options.label is not None
    return ("pairs" if roles == ["source", "target"] and not given else "texts"), table


def task_of(options: argparse.Namespace) -> FileTask:
    """Return the file and its columns, as the options name them."""
    kind, table = kind_of_file(options)
    for name in [*OPTIONS, "pooling"]:
        if getattr(options, name, None) is not None and name not in OPTIONS_OF[kind]:
            of = " or ".join(words for k, words in WORDS.items() if name in OPTIONS_OF[k])
            raise ValueError(
                f"--{name.replace('_', '-')} is given; it is for {of}. {options.task} is read as "
                f"{WORDS[kind].partition(',')[0]}"
            )
    names = ("validation", "test", "encoding", "keep_repeated", "skip_empty")
    given = {name: v for name in names if (v := getattr(options, name)) is not None}
    given |= {"file": options.task, "seed": options.seed}
    if kind == "text":
        return BookTask(**given)
    if kind == "pairs":
        return _pairs(options, table, given)
    if table is None:
        return SeriesTask(label="labels", **given)
    if kind == "texts":
        text, label = (chosen_column(table, getattr(options, r), r) for r in ("text", "label"))
        _check_two(options.task, table, text, label, "texts and for the labels")
        return TextTask(text=text, label=label, **given)
    label = chosen_column(table, options.label, "label")
    roles = (options.id, options.time, label)
    features = list_of(options.features) or [name for name in table.columns if name not in roles]
    return SeriesTask(label=label, id=options.id, time=options.time, features=features, **given)


def _pairs(options: argparse.Namespace, table: Table | None, given: dict[str, Any]) -> PairsTask:
    if table is None:
        return PairsTask(**{"test": GENERATED["test"], **given})
    source, target = (chosen_column(table, getattr(options, r), r) for r in ("source", "target"))
    _check_two(options.task, table, source, target, "sources and for the targets")
    return PairsTask(source=source, target=target, **given)


def _check_two(file: str, table: Table, one: str, other: str, roles: str) -> None:
    if one == other:
        raise ValueError(
            f"the column {one!r} is named for the {roles}; expected two. {file} has "
            f"{', '.join(map(repr, table.columns))}"
        )


def model_for(options: argparse.Namespace, task: FileTask) -> Estimator:
    """Return an untrained model with the settings that were given."""
    config = {name: value for name, value in vars(options).items() if name in ENCODER}
    config = {name: v for name, v in config.items() if v is not None and name != "max_len"}
    mixers = split_names(config["mixer"])
    config["mixer"] = mixers[0] if len(mixers) == 1 else tuple(mixers)
    names = ("seed", "dtype", "backend")
    given = {name: v for name in names if (v := getattr(options, name)) is not None}
    if isinstance(task, BookTask | PairsTask):
        return _writer(options, task, config, given)
    names = ("max_len", "pooling", "members")
    given |= {name: v for name in names if (v := getattr(options, name)) is not None}
    if not isinstance(task, TextTask):
        return SeriesClassifier(config, **given)
    if options.freeze is not None:
        given["freeze"] = split_names(options.freeze)
    if options.pretrained is not None:
        return _pretrained(options, config, given)
    tokenizer: Any = options.tokenizer or "word"
    if tokenizer not in TOKENIZERS and Path(tokenizer).exists():
        from npformer.data.tokenizers import read_tokenizer

        tokenizer = read_tokenizer(tokenizer)
    for name in ("vocab_size", "ngrams"):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    return TextClassifier(config, tokenizer=tokenizer, **given)


def _writer(
    options: argparse.Namespace,
    task: BookTask | PairsTask,
    config: dict[str, Any],
    given: dict[str, Any],
) -> Estimator:
    """Return a model that writes."""
    if options.vocab_size is not None:
        given["vocab_size"] = options.vocab_size
    if options.tokenizer is not None:
        given["tokenizer"] = options.tokenizer
    if task.file in PAIRS and not Path(task.file).exists():
        config.setdefault("d_model", GENERATED["d_model"])
    if isinstance(task, BookTask):
        if options.max_len is not None:
            config["max_len"] = options.max_len
        return TextWriter(config, **given)
    if options.tokenizer is not None and len(both := split_names(options.tokenizer)) > 1:
        given["tokenizer"] = both
    if options.max_len is not None:
        given["max_len"] = options.max_len
    return TextTranslator(config, **given)


def _pretrained(
    options: argparse.Namespace, config: Mapping[str, Any], given: dict[str, Any]
) -> TextClassifier:
    """Return a classifier that starts from the weights in a folder."""
    wrong = [name for name in config if config[name] != options.usual.get(name)]
    wrong += [
        name for name in ("tokenizer", "vocab_size", "ngrams") if getattr(options, name) is not None
    ]
    if wrong:
        raise ValueError(
            f"--{wrong[0].replace('_', '-')} is given together with --pretrained, whose folder "
            "decides it; expected only --pretrained"
        )
    names = ("pooling", "members", "seed", "backend", "freeze")
    return TextClassifier(
        pretrained=options.pretrained, **{n: given[n] for n in names if n in given}
    )
