"""npformer train and npformer pretrain: train a model on a task or a file."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npformer.cli import train_file, train_task
from npformer.cli.model_settings import given_options
from npformer.cli.options import named_files
from npformer.cli.plugins import load_plugins
from npformer.cli.ranks import own_folder, who_is_who
from npformer.cli.run_folder import RunFolder
from npformer.cli.training import Training
from npformer.core import split_names
from npformer.mixers import MIXERS
from npformer.tasks.sources.kinds import OPTIONS
from npformer.tasks.sources.recipes import RECIPES, Recipe, usual_options
from npformer.training.storage.outputs import check_not_read

OF_THIS_CALL = (
    "command",
    "parser",
    "run",
    "usual",
    "plugin",
    "out",
    "resume",
    "overwrite",
    "quiet",
    "verbose",
    "ranks",
)
"""What the command line sets and a run does not depend on."""


def run(options: argparse.Namespace) -> int:
    """Train, save and test a model on a file, or for each split of a task; print the results."""
    plugins = load_plugins(options.plugin)
    recipe = None if options.command == "pretrain" else RECIPES.get(options.task)
    given = _options_of_run(options)
    mixers = split_names(given.get("mixer", options.usual["mixer"]))
    for name in mixers:
        MIXERS.parse(name, "mixer")
    if (words := who_is_who(options.ranks)) and not options.quiet:
        print(words)
    out = options.out or Path("runs") / _name_of_run(options, mixers, is_task=recipe is not None)
    with own_folder(options.ranks, out) as path:
        folder = RunFolder(
            path,
            splits=(*recipe.splits,) if recipe else (),
            plugins=plugins,
            resume=options.resume,
            overwrite=options.overwrite,
        )
        if options.overwrite:
            _check_replaces_no_input(options, folder)
        fitting = {} if options.resume and folder.saved else usual_options(options.task, mixers)
        chosen = folder.options(given, options.usual | fitting)
        chosen = options.ranks.first(chosen)  # which alone knows the run that goes on
        if options.resume and not options.quiet:
            what = "the run there goes on" if folder.saved else "no run is there, so one begins"
            print(f"--resume, {folder.path}: {what}")
        for name, value in chosen.items():
            setattr(options, name, value)
        _check_fits(options, recipe)
        training = Training(options, folder, chosen)
        return train_file.run(training) if recipe is None else train_task.run(training, recipe)


def _check_replaces_no_input(options: argparse.Namespace, folder: RunFolder) -> None:
    """Check that the run that is replaced is none that the new one begins with."""
    sources = named_files(options, "out")
    for file in folder.files():
        check_not_read("--out has", file, sources)


def _options_of_run(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given and that a run depends on."""
    given = {
        name: value
        for name, value in vars(options).items()
        if name not in OF_THIS_CALL and value is not None
    }
    if options.command == "pretrain":
        given["command"] = options.command  # with which a run goes on
    return given


def _name_of_run(options: argparse.Namespace, mixers: Sequence[str], *, is_task: bool) -> str:
    """Return what the folder of a run is called, if --out does not say it."""
    data = options.task if is_task else Path(options.task).name.partition(".")[0] or "texts"
    if options.command != "pretrain" and getattr(options, "pretrained", None) is not None:
        return f"{data}-from-{Path(options.pretrained).name}"
    # mean(power=2) becomes mean_power=2.
    model = "-".join(re.sub(r"[^\w.=-]+", "_", name).strip("_") for name in mixers)
    return f"{data}-pretrained-{model}" if options.command == "pretrain" else f"{data}-{model}"


def _check_fits(options: argparse.Namespace, recipe: Recipe | None) -> None:
    """Check that options of tasks are given for a task only, and those of files for a file."""
    if recipe is None:
        if getattr(options, "split", None) is not None:
            raise ValueError("--split is for tasks; expected none for a file: --test cuts it")
        return
    if wrong := given_options(options, {*OPTIONS} - {"pooling"}):
        raise ValueError(
            f"--{min(wrong).replace('_', '-')} is for files; expected none of its kind for "
            f"the task {recipe.name}"
        )
