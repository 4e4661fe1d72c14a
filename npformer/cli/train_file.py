"""npformer train FILE: train a model on a file, and compare it with simple baselines."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import npformer
from npformer.cli import common
from npformer.cli.file_kinds import GENERATED, OPTIONS, model_for, task_of
from npformer.cli.measured import measure
from npformer.cli.recipes.doubts import doubt_features
from npformer.cli.recipes.file_task import Part
from npformer.cli.recipes.labelled_tasks import SeriesTask
from npformer.cli.run_files import draw_curves
from npformer.cli.run_folder import RunFolder
from npformer.core import checks
from npformer.data.pairs import PAIRS
from npformer.optim import SCHEDULES
from npformer.tasks.estimators import Classifier, Estimator
from npformer.training.inspection.summary import summary
from npformer.training.storage.files import write_whole
from npformer.training.storage.models import checkpoint_name, save

__all__ = ["OPTIONS", "run"]

TRAINING = ("epochs", "batch_size", "micro_batch", "lr", "weight_decay", "label_smoothing")
MORE = ("clip_norm", "schedule", "workers", "masks", "precision", "metric", "no_decay")
OF_FILES = ("patience", "class_weight")

LEFT_OUT = ("callbacks", "communicator", "shard_moments")
"""Arguments of `fit` that metrics.json does not repeat."""

NEXT = {
    "TextClassifier": ("predict", '"a text of your own"'),
    "SeriesClassifier": ("predict", "FILE"),
    "TextWriter": ("generate", '"a beginning"'),
    "TextTranslator": ("predict", '"a source"'),
}
"""What to do with a trained model: the command, and what follows the folder."""


def run(
    options: argparse.Namespace, folder: RunFolder, chosen: dict[str, Any], plugins: list[str]
) -> int:
    """Train with all options filled in, and print the results."""
    task = task_of(options)
    parts, how = task.parts()
    model = model_for(options, task)
    training = _training(options)
    say: Callable[[str], None] = (lambda words: None) if options.quiet else print
    say(f"npformer {npformer.__version__} on {common.device_of(options)}\n\n{task.file}: {how}\n")
    if isinstance(task, SeriesTask) and task.features:
        say(f"features: {', '.join(task.features)}\n")
        doubt_features(task.features)
    train, held_out = parts["train"].data(), parts["validation"].data()
    validation: Any = held_out if len(held_out) == 2 else held_out[0] if held_out else None
    with folder.begun(chosen, plugins, resume=options.resume):
        model.fit(
            *train,
            validation=validation if len(parts["validation"]) else None,
            checkpoint=folder.checkpoint("model"),
            communicator=options.ranks,
            shard_moments=bool(options.shard_moments),
            resume=True,  # `RunFolder` has set an earlier run aside if this does not go on with it
            on_interrupt="return",
            progress=not options.quiet and sys.stderr is not None and sys.stderr.isatty(),
            callbacks=[_Summary(model, train, say)],
            **training,
        )
        about = {"task": task.to_dict(), "seed": options.seed, "plugins": plugins}
        save(model, folder.path / checkpoint_name(), notes=about)
        stopped = model.histories_[-1].stopped
        if (status := common.STATUS.get(stopped)) is not None:
            done = len(model.histories_[-1].train_loss)
            print(f"{stopped} after {done} of {model.settings_['epochs']} epochs. To go on:")
            file, out = shlex.quote(task.file), shlex.quote(str(folder.path))
            print(f"npformer train {file} --out {out} --resume")
            return status
        _finish(options, folder, model, parts, about)
        folder.forget_replaced()
    return 0


def _training(options: argparse.Namespace) -> dict[str, Any]:
    """Return those arguments of `fit` that were given, or that suit a generated task."""
    names = (*TRAINING, *MORE, *OF_FILES)
    given = {n: getattr(options, n) for n in names if getattr(options, n) is not None}
    if "schedule" in given:
        SCHEDULES.parse(given["schedule"], "--schedule")
    for name in ("epochs", "batch_size"):
        if name in given:
            checks.positive(f"--{name.replace('_', '-')}", given[name])
    if options.task in PAIRS and not Path(options.task).exists():
        given.setdefault("epochs", GENERATED["epochs"])
    return given


class _Summary(npformer.Callback):
    """Shows the first model before it is trained."""

    def __init__(self, model: Estimator, data: tuple[Any, ...], say: Callable[[str], None]) -> None:
        self.model, self.data, self.say = model, data, say

    def on_start(self, state: npformer.TrainingState) -> None:
        """Print the summary of the model."""
        if state.model is self.model.models_[0]:
            self.say(f"{summary(state.model, self.model.example(*self.data))}\n")


def _finish(
    options: argparse.Namespace,
    folder: RunFolder,
    model: Estimator,
    parts: dict[str, Part],
    about: dict[str, Any],
) -> None:
    """Measure the model on the test part, write what is known about it, and print it."""
    path, test = folder.path, parts["test"]
    histories = [history.to_dict() for history in model.histories_]
    metrics: dict[str, Any] = {
        **about,
        "kind": about["task"]["kind"],
        "npformer": npformer.__version__,
        "numpy": np.__version__,
        "members": len(model.models_),
        "parameters": model.model.n_parameters(),
        "config": model.model.config.to_dict(),
        "samples": {name: len(part) for name, part in parts.items()},
        "training": {n: _plain(v) for n, v in model.settings_.items() if n not in LEFT_OUT},
        "best_epochs": [history["best_epoch"] for history in histories],
        "seconds": round(sum(sum(history["seconds"]) for history in histories), 2),
    }
    if isinstance(model, Classifier):
        metrics["classes"] = model.classes_.tolist()
    files = [checkpoint_name(), "history.json", "metrics.json"]
    if len(test):
        found = measure(options, model, parts, path)
        if found is None:  # the first rank writes and prints
            return
        metrics |= found.metrics
        files += found.files
        print(found.words)
    for name, values in (("history", histories), ("metrics", metrics)):
        write_whole(path / f"{name}.json", (json.dumps(values, indent=2) + "\n").encode())
    title = f"{Path(options.task).name}, {options.mixer}, seed {options.seed}"
    tested = {"": metrics.get("test", {}).get("accuracy", math.nan)}
    curves = draw_curves({"": model.history_}, tested, title, path)
    history = model.history_
    epochs = f"weights of epoch {history.best_epoch} of {len(history.train_loss)}"
    if len(model.models_) > 1:
        print(f"{len(model.models_)} models with different seeds, whose probabilities are averaged")
    print(f"{epochs}, {metrics['seconds']:.1f} s")
    print(f"{path}: {', '.join(files)}; {curves}")
    command, what = NEXT[type(model).__name__]
    print(f"npformer {command} {shlex.quote(str(path))} {what}")


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
