"""npformer train: train a model on a task or a file."""

import argparse
import re
import shlex
import sys
from collections.abc import Container
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

import npformer
from npformer.cli import common, train_file
from npformer.cli.common import option
from npformer.cli.file_options import add_file_options
from npformer.cli.load_model import in_dtype_of
from npformer.cli.plugins import load_plugins
from npformer.cli.ranks import own_folder, who_is_who
from npformer.cli.recipes.recipes import RECIPES, Recipe
from npformer.cli.run_files import Results
from npformer.cli.run_folder import RunFolder
from npformer.cli.train_options import (
    add_model_options,
    add_training_options,
    task_or_file,
)
from npformer.core import checks, split_names, use_precision
from npformer.data import Dataset
from npformer.data.pairs import PAIRS
from npformer.models import EncoderConfig
from npformer.optim import SCHEDULES, schedule_for
from npformer.training.evaluation import batch_at_evaluation, evaluate
from npformer.training.fit import fit
from npformer.training.history import History
from npformer.training.inspection.summary import summary
from npformer.training.trainable import SequenceClassifier

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
    "ranks",
)
"""What the command line sets and a run does not depend on."""

OFTEN = (
    *("--text", "--label", "--source", "--target", "--mixer", "--layers", "--epochs", "--seed"),
    *("--out", "--resume"),
)
"""The options that the short help shows."""

MODEL_SETTINGS = {"pooling", "output", *(field.name for field in fields(EncoderConfig))}


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
    option(train, "--resume", f"{resume}; --epochs may grow", action="store_true")
    anew = "begin anew in the folder of an earlier run, which is kept until this one has finished"
    option(train, "--overwrite", anew, action="store_true")
    option(train, "--quiet", "no progress bar and no summary", action="store_true")
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
    # mean(power=2) becomes mean_power=2 in the folder's name.
    named = "-".join(re.sub(r"[^\w.=-]+", "_", name).strip("_") for name in mixers)
    task = options.task if recipe else Path(options.task).name.partition(".")[0] or "texts"
    if (words := who_is_who(options.ranks)) and not options.quiet:
        print(words)
    with own_folder(options.ranks, options.out or Path("runs") / f"{task}-{named}") as path:
        folder = RunFolder(path, recipe.splits if recipe else ())
        return _run_in(folder, options, recipe, given, plugins)


def _run_in(
    folder: RunFolder,
    options: argparse.Namespace,
    recipe: Recipe | None,
    given: dict[str, Any],
    plugins: list[str],
) -> int:
    """Train in a folder."""
    chosen = folder.options(
        given, options.usual, resume=options.resume, overwrite=options.overwrite
    )
    chosen = options.ranks.first(chosen)  # which alone knows the run that goes on
    if options.resume:
        folder.check_plugins(plugins)
        if not options.quiet:
            what = "the run there goes on" if folder.saved else "no run is there, so one begins"
            print(f"--resume, {folder.path}: {what}")
    for name, value in chosen.items():
        setattr(options, name, value)
    if recipe is None:
        return train_file.run(options, folder, chosen, plugins)
    if wrong := [name for name in train_file.OPTIONS if chosen.get(name) is not None]:
        raise ValueError(
            f"--{wrong[0].replace('_', '-')} is for files; expected none of its kind for "
            f"the task {recipe.name}"
        )
    return _train(options, recipe, folder, chosen, plugins)


def _train(
    options: argparse.Namespace,
    recipe: Recipe,
    folder: RunFolder,
    chosen: dict[str, Any],
    plugins: list[str],
) -> int:
    """Train with all options filled in."""
    splits = _splits(recipe, options.split)
    device = common.device_of(options)
    mixers = split_names(options.mixer)
    changes = _given(options, MODEL_SETTINGS)
    changes["mixer"] = mixers[0] if len(mixers) == 1 else tuple(mixers)
    training = _training(recipe, options)
    about = {
        "task": recipe.name,
        "mixer": changes["mixer"],
        "seed": options.seed,
        "backend": options.backend,
        "device": device,
        "precision": options.precision,
        "dtype": options.dtype,
        "npformer": npformer.__version__,
        "numpy": np.__version__,
        "training": training,
        "plugins": plugins,
    }
    results = Results(folder.path, about)
    say = (lambda words: None) if options.quiet else print
    say(f"npformer {npformer.__version__} on {device}")

    def made(split: str) -> tuple[Dataset, SequenceClassifier]:
        dataset = recipe.load(split, options.seed)
        model = recipe.model(dataset, options.seed, options.dtype, **changes)
        return dataset, model.to(options.backend)

    dataset, model = made(splits[0])  # a model that cannot be built leaves no folder
    with folder.begun(chosen, plugins, resume=options.resume):
        results.begin(model)
        x, _ = in_dtype_of(model, dataset.train)
        say(f"\n{recipe.name}: {recipe.summary}\n\n{summary(model, x[:1])}\n")
        for split in splits:
            if split != splits[0]:
                dataset, model = made(split)
            if len(splits) > 1:
                parts = dataset.train, dataset.validation, dataset.test
                train, validation, test = (f"{len(x):,}" for x, _ in parts)
                say(f"{split} split: {train} training, {validation} validation, {test} test")
            history = _fit(model, dataset, training, folder.checkpoint(split), options)
            if history.best_epoch is not None:
                # Saved before the test, which may be interrupted or run out of memory.
                results.add_training(split, model, history)
            if (status := common.STATUS.get(history.stopped)) is not None:
                _say_interrupted(history, training["epochs"], recipe.name, folder.path)
                return status
            at_once = batch_at_evaluation(training["batch_size"], options.micro_batch)
            with use_precision(options.precision, options.backend):
                tested = in_dtype_of(model, dataset.test)
                found = evaluate(model, tested, at_once, communicator=options.ranks)
            results.add_test(split, found)
        results.end()
        folder.forget_replaced()
    return 0


def _say_interrupted(history: History, epochs: int, task: str, folder: Path) -> None:
    """Say how far the training came, and how to go on."""
    print(f"{history.stopped} after {len(history.train_loss)} of {epochs} epochs. To go on:")
    print(f"npformer train {task} --out {shlex.quote(str(folder))} --resume")


def _splits(recipe: Recipe, wanted: str | None) -> tuple[str, ...]:
    if wanted is None or wanted == "both":
        return recipe.splits
    checks.choice(f"--split of task {recipe.name}", wanted, (*recipe.splits, "both"))
    return (wanted,)


def _given(options: argparse.Namespace, names: Container[str]) -> dict[str, Any]:
    """Return those of the named settings that were given on the command line."""
    return {name: v for name, v in vars(options).items() if name in names and v is not None}


def _training(recipe: Recipe, options: argparse.Namespace) -> dict[str, Any]:
    """Return the task's settings, replaced by those that were given on the command line."""
    training = dict(recipe.training)
    if options.output is not None:
        training["label_smoothing"] = 0.0  # not every loss has labels to smooth
    training |= _given(options, recipe.training)
    checks.positive("--epochs", training["epochs"])
    checks.positive("--batch-size", training["batch_size"])
    if options.schedule is not None:
        SCHEDULES.parse(options.schedule, "--schedule")
        schedule_for(options.schedule, steps=1_000_000, warmup=100_000)  # finds errors early
        training["schedule"] = options.schedule
    return training


def _fit(
    model: SequenceClassifier,
    dataset: Dataset,
    training: dict[str, Any],
    checkpoint: Path,
    options: Any,
) -> History:
    steps = training["epochs"] * -(-len(dataset.train[0]) // training["batch_size"])
    schedule = training.get("schedule") or ("cosine" if steps > 1 else "constant")
    return fit(
        model,
        in_dtype_of(model, dataset.train),
        validation=in_dtype_of(model, dataset.validation),
        schedule=schedule_for(schedule, steps, int(training["warmup"] * steps)),
        seed=options.seed,
        workers=options.workers,
        micro_batch=options.micro_batch,
        precision=options.precision,
        masks=options.masks,
        no_decay=options.no_decay,
        metric=options.metric or "accuracy",
        progress=not options.quiet and sys.stderr is not None and sys.stderr.isatty(),
        on_interrupt="return",
        checkpoint=checkpoint,
        communicator=options.ranks,
        shard_moments=bool(options.shard_moments),
        resume=True,  # `RunFolder` has set an earlier run aside if this one does not go on with it
        **{name: v for name, v in training.items() if name not in ("schedule", "warmup")},
    )
