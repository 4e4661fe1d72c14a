"""What trainings on tasks and on files share: settings of `fit`, and the files that they write."""

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import npformer
from npformer.cli.common import STATUS
from npformer.cli.run_folder import RunFolder
from npformer.training.history import History
from npformer.training.inspection.curves import figure_of, write_figure

VERSIONS = {"npformer": npformer.__version__, "numpy": np.__version__}


def talk(options: argparse.Namespace) -> Callable[[str], None]:
    """Return what prints words, unless --quiet is given."""
    return (lambda words: None) if options.quiet else print


def settings_of_fit(options: argparse.Namespace, folder: RunFolder, name: str) -> dict[str, Any]:
    """Return the arguments of `fit` that are the command's; `name` is that of the checkpoint."""
    return {
        "checkpoint": folder.checkpoint(name),
        "communicator": options.ranks,
        "shard_moments": bool(options.shard_moments),
        "resume": True,  # `RunFolder` has set an earlier run aside if this one does not go on
        "on_interrupt": "return",
        "progress": not options.quiet and sys.stderr is not None and sys.stderr.isatty(),
    }


def status_of(history: History, epochs: int, task: str, folder: Path) -> int | None:
    """Return the status of a training that was stopped, and say how to go on; else None."""
    if (status := STATUS.get(history.stopped)) is not None:
        print(f"{history.stopped} after {len(history.train_loss)} of {epochs} epochs. To go on:")
        print(f"npformer train {shlex.quote(task)} --out {shlex.quote(str(folder))} --resume")
    return status


def draw_curves(
    histories: Mapping[str, History], tested: Mapping[str, float], title: str, folder: Path
) -> str:
    """Draw the curves of some trainings; return the name of the file, or why there is none.

    `tested` has test accuracies, which are drawn beside validation accuracies only.
    """
    shown = {name: tested[name] for name, h in histories.items() if h.metric == "accuracy"}
    try:
        figure = figure_of(histories, shown, title)
    except ImportError:
        return 'no curves.png: python -m pip install "npformer[plot]"'
    write_figure(figure, folder / "curves.png")
    return "curves.png"
