"""npformer train FILE: train a classifier on texts or series, and compare it with baselines."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

import npformer
from npformer.core import checks, split_names
from npformer.data.tables import read_table
from npformer.inspection.summary import summary
from npformer.models import EncoderConfig
from npformer.optim import SCHEDULES
from npformer.pipelines import RawClassifier, SeriesClassifier, TextClassifier
from npformer.storage.files import write_whole
from npformer.storage.models import checkpoint_name, save
from npformer.text import TOKENIZERS
from npformer.tools.cli import common
from npformer.tools.cli.file_results import compared, scores_of_baselines, worst_mistakes
from npformer.tools.cli.run_files import draw_curves
from npformer.tools.cli.run_folder import REPORT, RunFolder
from npformer.tools.doubts import doubt_features
from npformer.tools.file_task import (
    FileTask,
    Part,
    SeriesTask,
    TextTask,
    chosen_column,
    list_of,
)

ENCODER = {field.name for field in fields(EncoderConfig)}
TRAINING = ("epochs", "batch_size", "micro_batch", "lr", "weight_decay", "label_smoothing")
MORE = ("clip_norm", "schedule", "workers", "masks", "precision", "metric", "no_decay")
OF_FILES = ("patience", "class_weight")
OF_TEXTS = ("text", "tokenizer", "vocab_size", "ngrams", "skip_empty", "pretrained")
OF_SERIES = ("id", "time", "features")
OF_BOTH = ("label", "test", "validation", "max_len", "members", "encoding", "freeze", *OF_FILES)
OPTIONS = (*OF_TEXTS, *OF_SERIES, *OF_BOTH, "keep_repeated")
"""What only a file has."""

LEFT_OUT = ("callbacks", "communicator", "shard_moments")
"""Arguments of `fit` that metrics.json does not repeat."""

MOST_REPORTED = 1000
"""Samples of the test part in the report, which stays small enough to open."""


def run(
    options: argparse.Namespace, folder: RunFolder, chosen: dict[str, Any], plugins: list[str]
) -> int:
    """Train with all options filled in, and print the results."""
    task = _task(options)
    parts, how = task.parts()
    classifier = _classifier(options, task)
    training = _training(options)
    say: Callable[[str], None] = (lambda words: None) if options.quiet else print
    say(f"npformer {npformer.__version__} on {common.device_of(options)}\n\n{task.file}: {how}\n")
    if isinstance(task, SeriesTask) and task.features:
        say(f"features: {', '.join(task.features)}\n")
        doubt_features(task.features)
    held_out = parts["validation"]
    with folder.begun(chosen, plugins, resume=options.resume):
        classifier.fit(
            parts["train"].samples,
            parts["train"].labels,
            validation=(held_out.samples, held_out.labels) if len(held_out) else None,
            checkpoint=folder.checkpoint("model"),
            communicator=options.ranks,
            shard_moments=bool(options.shard_moments),
            resume=True,  # `RunFolder` has set an earlier run aside if this does not go on with it
            on_interrupt="return",
            progress=not options.quiet and sys.stderr is not None and sys.stderr.isatty(),
            callbacks=[_Summary(classifier, parts["train"].samples[:1], say)],
            **training,
        )
        about = {"task": task.to_dict(), "seed": options.seed, "plugins": plugins}
        save(classifier, folder.path / checkpoint_name(), notes=about)
        stopped = classifier.histories[-1].stopped
        if (status := common.STATUS.get(stopped)) is not None:
            done = len(classifier.histories[-1].train_loss)
            print(f"{stopped} after {done} of {classifier.settings['epochs']} epochs. To go on:")
            file, out = shlex.quote(task.file), shlex.quote(str(folder.path))
            print(f"npformer train {file} --out {out} --resume")
            return status
        _finish(options, folder, classifier, parts, about)
        folder.forget_replaced()
    return 0


def _task(options: argparse.Namespace) -> FileTask:
    """Return the file and its columns, as the options name them."""
    arrays = Path(options.task).suffix.lower() == ".npz"
    series = arrays or options.id is not None
    for name in OF_TEXTS if series else OF_SERIES:
        if getattr(options, name) is not None:
            of = "texts" if series else "series, which --id makes of a table"
            raise ValueError(f"--{name.replace('_', '-')} is given; it is for {of}")
    common_names = ("validation", "test", "encoding", "keep_repeated")
    names = common_names if series else (*common_names, "skip_empty")
    given = {name: v for name in names if (v := getattr(options, name)) is not None}
    given |= {"file": options.task, "seed": options.seed}
    if arrays:
        return SeriesTask(label="labels", **given)
    table = read_table(options.task, encoding=options.encoding or "utf-8")
    if not series:
        text, label = (chosen_column(table, getattr(options, r), r) for r in ("text", "label"))
        if text == label:
            raise ValueError(
                f"the column {text!r} is named for the texts and for the labels; expected two. "
                f"{options.task} has {', '.join(map(repr, table.columns))}"
            )
        return TextTask(text=text, label=label, **given)
    label = chosen_column(table, options.label, "label")
    roles = (options.id, options.time, label)
    features = list_of(options.features) or [name for name in table.columns if name not in roles]
    return SeriesTask(label=label, id=options.id, time=options.time, features=features, **given)


def _classifier(options: argparse.Namespace, task: FileTask) -> RawClassifier:
    """Return an untrained classifier with the settings that were given."""
    config = {name: value for name, value in vars(options).items() if name in ENCODER}
    config = {name: v for name, v in config.items() if v is not None and name != "max_len"}
    mixers = split_names(config["mixer"])
    config["mixer"] = mixers[0] if len(mixers) == 1 else tuple(mixers)
    names = ("max_len", "pooling", "members", "seed", "dtype", "backend")
    given = {name: v for name in names if (v := getattr(options, name)) is not None}
    if not isinstance(task, TextTask):
        return SeriesClassifier(config, **given)
    if options.freeze is not None:
        given["freeze"] = split_names(options.freeze)
    if options.pretrained is not None:
        return _pretrained(options, config, given)
    tokenizer: Any = options.tokenizer or "word"
    if tokenizer not in TOKENIZERS and Path(tokenizer).exists():
        from npformer.text import read_tokenizer

        tokenizer = read_tokenizer(tokenizer)
    for name in ("vocab_size", "ngrams"):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    return TextClassifier(config, tokenizer=tokenizer, **given)


def _pretrained(
    options: argparse.Namespace, config: dict[str, Any], given: dict[str, Any]
) -> TextClassifier:
    """Return a classifier that begins with the weights of a folder."""
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


def _training(options: argparse.Namespace) -> dict[str, Any]:
    """Return those arguments of `fit` that were given."""
    names = (*TRAINING, *MORE, *OF_FILES)
    given = {n: getattr(options, n) for n in names if getattr(options, n) is not None}
    if "schedule" in given:
        SCHEDULES.parse(given["schedule"], "--schedule")
    for name in ("epochs", "batch_size"):
        if name in given:
            checks.positive(f"--{name.replace('_', '-')}", given[name])
    return given


class _Summary(npformer.Callback):
    """Shows the first model before it is trained."""

    def __init__(
        self, classifier: RawClassifier, some: list[Any], say: Callable[[str], None]
    ) -> None:
        self.classifier, self.some, self.say = classifier, some, say

    def on_start(self, state: npformer.TrainingState) -> None:
        """Print the summary of the model."""
        if state.model is self.classifier.models[0]:
            x, _ = self.classifier.arrays(self.some)
            self.say(f"{summary(state.model, x)}\n")


def _finish(
    options: argparse.Namespace,
    folder: RunFolder,
    classifier: RawClassifier,
    parts: dict[str, Part],
    about: dict[str, Any],
) -> None:
    """Measure the model on the test part, write what is known about it, and print it."""
    path, test = folder.path, parts["test"]
    histories = [history.to_dict() for history in classifier.histories]
    metrics: dict[str, Any] = {
        **about,
        "kind": about["task"]["kind"],
        "npformer": npformer.__version__,
        "numpy": np.__version__,
        "parameters": classifier.model.n_parameters(),
        "config": classifier.model.config.to_dict(),
        "classes": classifier.classes,
        "samples": {name: len(part) for name, part in parts.items()},
        "training": {n: _plain(v) for n, v in classifier.settings.items() if n not in LEFT_OUT},
        "best_epochs": [history["best_epoch"] for history in histories],
        "seconds": round(sum(sum(history["seconds"]) for history in histories), 2),
    }
    files = [checkpoint_name(), "history.json", "metrics.json"]
    if len(test):
        scores = classifier.evaluate(test.samples, test.labels, communicator=options.ranks)
        if options.ranks.rank:  # the first compares, writes and prints
            return
        beside = scores_of_baselines(classifier, parts)
        metrics["test"] = scores.to_dict()
        metrics["baselines"] = {
            name: {"accuracy": each.accuracy, "macro_f1": each.macro_f1}
            for name, each in beside.items()
            if each is not None
        }
        print(
            f"{len(test):,} {metrics['kind']} of the test: {scores}\n\n{compared(scores, beside)}\n"
        )
        print(worst_mistakes(scores, test, classifier))
        some = test.rows(range(min(len(test), MOST_REPORTED)))
        title = f"{Path(options.task).name}: {len(test):,} {metrics['kind']} of the test"
        classifier.report(
            some.samples, some.labels, path / REPORT, title=title, scores=scores, beside=beside
        )
        files.append(REPORT)
    for name, values in (("history", histories), ("metrics", metrics)):
        write_whole(path / f"{name}.json", (json.dumps(values, indent=2) + "\n").encode())
    title = f"{Path(options.task).name}, {options.mixer}, seed {options.seed}"
    tested = {"": metrics.get("test", {}).get("accuracy", math.nan)}
    curves = draw_curves({"": classifier.history}, tested, title, path)
    found = classifier.history
    epochs = f"weights of epoch {found.best_epoch} of {len(found.train_loss)}"
    print(f"{epochs}, {metrics['seconds']:.1f} s")
    print(f"{path}: {', '.join(files)}; {curves}")
    own = '"a text of your own"' if isinstance(classifier, TextClassifier) else "FILE"
    print(f"npformer predict {shlex.quote(str(path))} {own}")


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
