"""npformer train and npformer pretrain: train a model on a task or a file."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npformer.cli import train_file, train_task
from npformer.cli.embedded import EMBEDDED, FILE_NAMES
from npformer.cli.model_options import add_architecture, add_training
from npformer.cli.model_settings import options_typed
from npformer.cli.options import (
    POSITIVE_INT,
    RATE,
    Commands,
    add_command,
    files_named,
    mark_options_not_typed,
    task_or_file,
)
from npformer.cli.parser import Parser
from npformer.cli.plugins import load_plugins
from npformer.cli.ranks import own_folder, who_is_who
from npformer.cli.run_folder import RunFolder
from npformer.cli.shared_options import (
    add_backend,
    add_file_options,
    add_patience,
    add_plugin,
    add_run,
    add_skip_empty,
)
from npformer.cli.training import Training
from npformer.core import split_names
from npformer.data.pairs import PAIRS
from npformer.mixers import MIXERS
from npformer.tasks.sources.file_kinds import OPTIONS
from npformer.tasks.sources.recipes import RECIPES, Recipe, usual_options
from npformer.training.storage.outputs import check_not_read

OF_THIS_CALL = (
    "command",
    "parser",
    "run",
    "defaults",
    "plugin",
    "out",
    "resume",
    "overwrite",
    "quiet",
    "verbose",
    "ranks",
)
"""What the command line sets and a run does not depend on."""


REMEMBERED = (
    "mixer",
    "dtype",
    "seed",
    "workers",
    "masks",
    "backend",
    "precision",
    "share_layers",
)
"""Options with a default; where they are not typed, a run that goes on has those it began with."""

SWITCHES = ("keep_repeated", "skip_empty", "shard_moments")
"""Options that are on or off; for a run that goes on, not typed is not the same as off."""

FILES_OF_TRAIN = """\
files: npformer train reviews.csv --text review --label opinion
       npformer train vowels.csv --id utterance --time step --label speaker
       npformer train plays.txt
       npformer train words.csv --source word --target phones
`npformer data NAME` prints each of these files. Each command splits the samples, makes a
vocabulary or scales the features, trains, and compares the model with baselines. For series in
a .npz file, or in .ts or .arff of the UCR archive, no columns are needed."""

EPILOG_OF_PRETRAIN = """\
npformer data sentences > reviews.csv
npformer pretrain reviews.csv --text review --out runs/reviews
npformer predict runs/reviews 'the film was [MASK]'
npformer train reviews.csv --text review --label opinion --from runs/reviews

The tokenizer learns a vocabulary, and the model to predict masked words, as BERT does (Devlin et
al., 2018). Texts come from a column of a table, or from the lines of a text file or of all .txt
and .md files in a folder. A text longer than --max-len is split."""


def add_train(commands: "Commands[Parser]") -> None:
    """Add `npformer train`."""
    tasks = [f"  {recipe.name:<14} {recipe.summary}" for recipe in RECIPES.values()]
    files = [f"  {name:<14} {EMBEDDED[name].what}" for name in FILE_NAMES]
    pairs = [f"  {name:<14} pairs: {what}" for name, what in PAIRS.items()]
    parser = add_command(
        commands,
        "train",
        summary="train a model on a file, or on a built-in task",
        epilog="\n".join(["tasks:", *tasks, *files, *pairs, "", FILES_OF_TRAIN]),
        run=run,
    )
    parser.add_argument(
        "task", metavar="TASK|FILE", type=task_or_file, help="one of the tasks below, or a file"
    )
    add_file_options(parser)
    add_architecture(parser)
    add_training(parser)
    add_backend(parser)
    add_plugin(parser)
    parser.add_argument(
        "--split",
        metavar="NAME",
        help="for the task digits: the stratified or ordered split, or both, with a model for each "
        "(default: both)",
    )
    add_run(parser, default_folder="runs/TASK-MIXER")
    mark_options_not_typed(parser, REMEMBERED, SWITCHES)
    parser.show_first(
        "--text",
        "--label",
        "--source",
        "--target",
        "--mixer",
        "--layers",
        "--epochs",
        "--seed",
        "--out",
        "--resume",
    )


def add_pretrain(commands: "Commands[Parser]") -> None:
    """Add `npformer pretrain`."""
    parser = add_command(
        commands,
        "pretrain",
        summary="pretrain a model on texts without labels, before it is trained on a few labels",
        epilog=EPILOG_OF_PRETRAIN,
        run=run,
    )
    parser.add_argument(
        "task",
        metavar="FILE",
        type=task_or_file,
        help="a table, a text file, or a folder of text files",
    )
    parser.add_argument(
        "--text", metavar="COLUMN", help="for a table: column with the texts (default: text)"
    )
    parser.add_argument(
        "--test",
        metavar="PART",
        help="test data: a fraction of the texts, or another file; 0 for none (default: 0.05)",
    )
    parser.add_argument(
        "--validation",
        metavar="PART",
        help="validation data, used to pick the best epoch: a fraction of the rest, or "
        "another file; 0 for none (default: 0)",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="word, wordpiece, bpe, or a tokenizer.json with a [MASK] (default: word)",
    )
    parser.add_argument(
        "--vocab-size",
        metavar="N",
        type=POSITIVE_INT,
        help="maximum size of the vocabulary (default: 8000)",
    )
    parser.add_argument(
        "--max-len",
        metavar="N",
        type=POSITIVE_INT,
        help="tokens per sample; longer texts are split (default: 64)",
    )
    parser.add_argument(
        "--mask-share",
        metavar="P",
        type=RATE,
        help="fraction of the tokens that are masked (default: 0.3)",
    )
    add_patience(parser)
    parser.add_argument(
        "--encoding", metavar="NAME", help="text encoding of the file (default: utf-8)"
    )
    parser.add_argument("--keep-repeated", action="store_true", help="keep duplicate texts")
    add_skip_empty(parser)
    add_architecture(parser)
    add_training(parser)
    add_backend(parser)
    add_plugin(parser)
    add_run(parser, default_folder="runs/FILE-pretrained-MIXER")
    mark_options_not_typed(parser, REMEMBERED, SWITCHES)
    parser.show_first(
        "--text",
        "--tokenizer",
        "--vocab-size",
        "--mixer",
        "--layers",
        "--d-model",
        "--epochs",
        "--seed",
        "--out",
        "--resume",
    )


def run(options: argparse.Namespace) -> int:
    """Train, save and test a model on a file, or for each split of a task; print the results."""
    plugins = load_plugins(options.plugin)
    recipe = None if options.command == "pretrain" else RECIPES.get(options.task)
    typed = _options_of_run(options)
    mixers = split_names(typed.get("mixer", options.defaults["mixer"]))
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
        chosen = folder.options(typed, options.defaults | fitting)
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
    sources = files_named(options, "out")
    for file in folder.files():
        check_not_read("--out has", file, sources)


def _options_of_run(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given and that a run depends on."""
    typed = {
        name: value
        for name, value in vars(options).items()
        if name not in OF_THIS_CALL and value is not None
    }
    if options.command == "pretrain":
        typed["command"] = options.command  # with which a run goes on
    return typed


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
    if wrong := options_typed(options, {*OPTIONS} - {"pooling"}):
        raise ValueError(
            f"--{min(wrong).replace('_', '-')} is for files; expected none of its kind for "
            f"the task {recipe.name}"
        )
