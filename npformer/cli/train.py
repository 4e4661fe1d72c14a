"""npformer train and npformer pretrain: train a model on a task or a file."""

import argparse
import re
from pathlib import Path

from npformer.cli import train_file, train_task
from npformer.cli.model_settings import given_options
from npformer.cli.plugins import load_plugins
from npformer.cli.ranks import own_folder, who_is_who
from npformer.cli.run_folder import RunFolder
from npformer.cli.training import Training
from npformer.core import split_names
from npformer.mixers import MIXERS
from npformer.tasks.sources.kinds import OPTIONS
from npformer.tasks.sources.recipes import RECIPES, usual_options

OF_THIS_CALL = (
    *("command", "parser", "run", "usual", "plugin"),
    *("out", "resume", "overwrite", "quiet", "verbose", "ranks"),
)
"""What the command line sets and a run does not depend on."""


def run(options: argparse.Namespace) -> int:
    """Train, save and test a model on a file, or for each split of a task; print the results."""
    plugins = load_plugins(options.plugin)
    labelled = options.command != "pretrain"
    recipe = RECIPES.get(options.task) if labelled else None
    given = {n: v for n, v in vars(options).items() if n not in OF_THIS_CALL and v is not None}
    if not labelled:
        given["command"] = options.command  # with which a run goes on
    mixers = split_names(given.get("mixer", options.usual["mixer"]))
    for name in mixers:
        MIXERS.parse(name, "mixer")
    # mean(power=2) becomes mean_power=2 in the folder's name.
    named = "-".join(re.sub(r"[^\w.=-]+", "_", name).strip("_") for name in mixers)
    task = options.task if recipe else Path(options.task).name.partition(".")[0] or "texts"
    if not labelled:
        named = f"pretrained-{named}"
    elif "pretrained" in given:
        named = f"from-{Path(given['pretrained']).name}"
    if (words := who_is_who(options.ranks)) and not options.quiet:
        print(words)
    out = options.out or Path("runs") / f"{task}-{named}"
    with own_folder(options.ranks, out) as path:
        how = options.resume, options.overwrite
        folder = RunFolder(path, (*recipe.splits,) if recipe else (), plugins, *how)
        fitting = {} if options.resume and folder.saved else usual_options(options.task, mixers)
        chosen = folder.options(given, options.usual | fitting)
        chosen = options.ranks.first(chosen)  # which alone knows the run that goes on
        if options.resume and not options.quiet:
            what = "the run there goes on" if folder.saved else "no run is there, so one begins"
            print(f"--resume, {folder.path}: {what}")
        vars(options).update(chosen)
        if recipe is None:
            if getattr(options, "split", None) is not None:
                raise ValueError("--split is for tasks; expected none for a file: --test cuts it")
            return train_file.run(Training(options, folder, chosen))
        if wrong := given_options(options, {*OPTIONS} - {"pooling"}):
            raise ValueError(
                f"--{min(wrong).replace('_', '-')} is for files; expected none of its kind for "
                f"the task {recipe.name}"
            )
        return train_task.run(Training(options, folder, chosen), recipe)
