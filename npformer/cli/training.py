"""What trainings on tasks and on files share: settings of `fit`, and the files that they write."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import npformer
from npformer.cli.common import STATUS
from npformer.cli.model_settings import options_typed
from npformer.cli.run_folder import RunFolder, write_json
from npformer.core import split_names
from npformer.training.fit import fit
from npformer.training.history import History
from npformer.training.inspection.curves import figure_of, write_figure
from npformer.training.inspection.summary import summary

TRAINING = {*signature(fit).parameters} - {"resume", "seed", "shard_moments", "validation"}
"""Options that are arguments of `fit`, without those that others give."""

VERSIONS = {"npformer": npformer.__version__, "numpy": np.__version__}


@dataclass(frozen=True)
class Training:
    """A call of `npformer train`.

    `options` are all of them, filled in; `chosen` are those that a run which goes on must have.
    """

    options: argparse.Namespace
    folder: RunFolder
    chosen: dict[str, Any]

    @property
    def path(self) -> Path:
        """The folder that is written into."""
        return self.folder.path

    def say(self, words: str) -> None:
        """Print words, unless --quiet is given."""
        if not self.options.quiet:
            print(words)

    def describe(self, model: Any, x: Any) -> None:
        """Print what a model is, in a line; with --verbose, a table of its layers."""
        config, many = model.config, "s" * (model.config.n_layers > 1)
        heads = f" with {config.n_heads} heads" * ("attention" in config.mixers())
        brief = (
            f"model: {config.n_layers} layer{many} of {', '.join(dict.fromkeys(config.mixers()))}"
            f"{heads}, {config.d_model} features a token, {config.d_ff} inside the feed-forward "
            f"network; {model.n_parameters():,} parameters, {model.dtype} (--verbose: all layers)"
        )
        self.say(f"\n{summary(model, x)}\n" if self.options.verbose else brief)

    def arguments(self, name: str) -> dict[str, Any]:
        """Return those arguments of `fit` that were given, and the command's own.

        `name` is that of the checkpoint.
        """
        return options_typed(self.options, TRAINING) | {
            "checkpoint": self.path / "checkpoints" / name,
            "communicator": self.options.ranks,
            "shard_moments": bool(self.options.shard_moments),
            "resume": True,  # `RunFolder` has set an earlier run aside if this one does not go on
            "on_interrupt": "return",
            "progress": not self.options.quiet and sys.stderr is not None and sys.stderr.isatty(),
        }

    def status(self, history: History, epochs: int) -> int | None:
        """Return the status of a training that was stopped, and say how to go on; else None."""
        if (status := STATUS.get(history.stopped)) is not None:
            task, folder = (shlex.quote(str(word)) for word in (self.options.task, self.path))
            print(
                f"{history.stopped} after {len(history.train_loss)} of {epochs} epochs. To go on:"
            )
            print(f"npformer {self.options.command} {task} --out {folder} --resume")
        return status

    def write(self, metrics: Mapping[str, Any], histories: Any) -> None:
        """Write what is known about the models, and the histories, as plain values."""
        write_json(self.path / "history.json", histories)
        write_json(self.path / "metrics.json", metrics)

    def draw_so_far(self, history: History) -> None:
        """Draw the curves of a training that was stopped, if it has an epoch, and say where."""
        if history.train_loss and not self.options.ranks.rank:
            write_json(self.path / "history.json", [history])
            print(f"so far: {self.path}/history.json; {self.draw_curves({'': history}, {})}")

    def draw_curves(self, histories: Mapping[str, History], tested: Mapping[str, float]) -> str:
        """Draw the curves of some trainings; return the name of the file, or why there is none.

        `tested` has test accuracies, which are drawn beside validation accuracies only.
        """
        options = self.options
        mixers = ", ".join(split_names(options.mixer))
        by_accuracy = [name for name, history in histories.items() if history.metric == "accuracy"]
        shown = {name: tested[name] for name in by_accuracy if name in tested}
        try:
            title = f"{Path(options.task).name}, {mixers}, seed {options.seed}"
            figure = figure_of(histories, shown, title)
        except ImportError:
            return 'no curves.png: python -m pip install "npformer[plot]"'
        write_figure(figure, self.path / "curves.png", overwrite=True)
        return "curves.png"
