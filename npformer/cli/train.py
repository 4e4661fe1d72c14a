"""npformer train: train a model on a task or a file."""

import argparse
import re
from pathlib import Path
from typing import Any

from npformer.cli import common, train_file, train_task
from npformer.cli.common import option
from npformer.cli.file_options import add_file_options
from npformer.cli.model_settings import given_options
from npformer.cli.plugins import load_plugins
from npformer.cli.ranks import own_folder, who_is_who
from npformer.cli.run_folder import RunFolder
from npformer.cli.train_options import add_model_options, add_training_options, task_or_file
from npformer.cli.training import Training
from npformer.core import split_names
from npformer.data.pairs import PAIRS
from npformer.mixers import MIXERS
from npformer.tasks.sources.kinds import OPTIONS
from npformer.tasks.sources.recipes import RECIPES

OF_THIS_CALL = (
    *("command", "parser", "run", "usual", "plugin"),
    *("out", "resume", "overwrite", "quiet", "ranks"),
)
"""What the command line sets and a run does not depend on."""

OFTEN = (
    *("--text", "--label", "--source", "--target", "--mixer", "--layers", "--epochs", "--seed"),
    *("--out", "--resume"),
)
"""The options that the short help shows."""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    tasks = "\n".join(f"  {recipe.name:<14} {recipe.summary}" for recipe in RECIPES.values())
    pairs = "\n".join(f"  {name:<14} pairs: {what}" for name, what in PAIRS.items())
    epilog = (
        f"tasks:\n{tasks}\n"
        "  sentences      3000 sentences of reviews, positive or negative: a file of texts\n"
        "  shakespeare    plays, 1.1 million characters: one text, to be continued\n"
        "  pronunciations 133,973 English words and how they are spoken: pairs\n"
        f"{pairs}\n\n"
        "files: npformer train reviews.csv --text review --label stars\n"
        "       npformer train walks.csv --id walk --time second --label gait\n"
        "       npformer train book.txt\n"
        "       npformer train pairs.csv --source english --target french\n"
        "They split the samples, make a vocabulary or scale the features, train, and say how good\n"
        "the model is compared with baselines. A .npz file of series needs no columns."
    )
    summary = "train a model on a file, or on a task"
    train = common.add_command(commands, "train", run, summary, epilog)
    text = "one of the tasks below, or a file"
    train.add_argument("task", metavar="TASK|FILE", help=text, type=task_or_file)
    add_file_options(train)
    add_model_options(train.add_argument_group("model (defaults fit the task)"))
    add_training_options(train.add_argument_group("training (defaults fit the task)"))
    common.add_backend(train)
    common.add_plugin(train)
    splits = "for digits: stratified, ordered, or both, which trains one model on each"
    option(train, "--split NAME", f"{splits} (default: both)")
    option(train, "--out DIR", "folder of this run alone (default: runs/TASK-MIXER)")
    resume = "go on with the run in the folder, from its last checkpoint; without one, begin"
    option(train, "--resume", f"{resume}; --epochs may grow")
    anew = "begin anew in the folder of an earlier run, which is kept until this one has finished"
    option(train, "--overwrite", anew)
    option(train, "--quiet", "no progress bar and no summary")
    train.show_first(*OFTEN)
    # None means that an option was not given: a run that goes on then has what it was begun with.
    names = ("mixer", "dtype", "seed", "workers", "masks", "backend", "precision", "share_layers")
    train.set_defaults(usual={name: train.get_default(name) for name in names})
    train.set_defaults(**dict.fromkeys(names))


def run(options: argparse.Namespace) -> int:
    """Train, save and test a model on a file, or for each split of a task; print the results."""
    plugins = load_plugins(options.plugin)
    recipe = RECIPES.get(options.task)
    given = {n: v for n, v in vars(options).items() if n not in OF_THIS_CALL and v is not None}
    mixers = split_names(given.get("mixer", options.usual["mixer"]))
    for name in mixers:
        MIXERS.parse(name, "mixer")
    # mean(power=2) becomes mean_power=2 in the folder's name.
    named = "-".join(re.sub(r"[^\w.=-]+", "_", name).strip("_") for name in mixers)
    task = options.task if recipe else Path(options.task).name.partition(".")[0] or "texts"
    if (words := who_is_who(options.ranks)) and not options.quiet:
        print(words)
    out = options.out or Path("runs") / f"{task}-{named}"
    with own_folder(options.ranks, out) as path:
        folder = RunFolder(path, recipe.splits if recipe else ())
        chosen = folder.options(
            given, options.usual, resume=options.resume, overwrite=options.overwrite
        )
        chosen = options.ranks.first(chosen)  # which alone knows the run that goes on
        if options.resume:
            folder.check_plugins(plugins)
            if not options.quiet:
                what = "the run there goes on" if folder.saved else "no run is there, so one begins"
                print(f"--resume, {folder.path}: {what}")
        vars(options).update(chosen)
        if recipe is None:
            if options.split is not None:
                raise ValueError("--split is for tasks; expected none for a file: --test cuts it")
            return train_file.run(Training(options, folder, chosen, plugins))
        if wrong := given_options(options, {*OPTIONS} - {"pooling"}):
            raise ValueError(
                f"--{min(wrong).replace('_', '-')} is for files; expected none of its kind for "
                f"the task {recipe.name}"
            )
        return train_task.run(Training(options, folder, chosen, plugins), recipe)
