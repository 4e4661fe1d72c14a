"""npformer train: train a classifier on a task."""

import argparse
import re
import shlex
import sys
from collections.abc import Container
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import npformer
from npformer.classifier import SequenceClassifier
from npformer.core import INITIALIZERS, checks, split_names, use_precision
from npformer.data import Dataset
from npformer.data.tables import SUFFIXES, kind_of
from npformer.inspection.summary import summary
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS
from npformer.losses import LOSSES
from npformer.mixers import MIXERS
from npformer.models import POSITIONS, EncoderConfig
from npformer.optim import SCHEDULES, schedule_for
from npformer.tools.cli import common, train_file
from npformer.tools.cli.common import option
from npformer.tools.cli.load_model import in_dtype_of
from npformer.tools.cli.run_files import Results
from npformer.tools.cli.run_folder import RunFolder
from npformer.tools.plugins import load_plugins
from npformer.tools.recipes import RECIPES, Recipe
from npformer.training import History, batch_at_evaluation, evaluate, fit
from npformer.training.metrics import METRICS

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
)
"""What the command line sets and a run does not depend on."""

MODEL_SETTINGS = {"pooling", "output", *(field.name for field in fields(EncoderConfig))}


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    tasks = "\n".join(f"  {recipe.name:<10} {recipe.summary}" for recipe in RECIPES.values())
    epilog = (
        f"tasks:\n{tasks}\n\nfiles: npformer train reviews.csv --text review --label stars\n"
        "       npformer train walks.csv --id walk --time second --label gait\n"
        "They part the samples, make a vocabulary or scale the features, train, and say how good\n"
        "the model is beside the simplest ones. A .npz file of series needs no columns."
    )
    summary = "train a classifier on a file, or on a task"
    train = common.add_command(commands, "train", run, summary, epilog)
    text = "one of the tasks below, or a table"
    train.add_argument("task", metavar="TASK|FILE", help=text, type=_task_or_file)
    train_file.add_to(train)
    _add_model_options(train.add_argument_group("model (defaults fit the task)"))
    _add_training_options(train.add_argument_group("training (defaults fit the task)"))
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
    # None means that an option was not given: a run that goes on then has what it was begun with.
    names = ("mixer", "dtype", "seed", "workers", "masks", "backend", "precision", "share_layers")
    train.set_defaults(usual={name: train.get_default(name) for name in names})
    train.set_defaults(**dict.fromkeys(names))


def _add_model_options(group: Any) -> None:
    add = partial(option, group)
    mixers = f"one for all layers, or one for each: {', '.join(MIXERS)}"
    add("--mixer NAME[,NAME...]", f"{mixers}, or a plugin's: 'mean(power=2)'", "attention")
    add("--layers N", "number of encoder blocks", dest="n_layers")
    add("--d-model N", "features of a token")
    add("--heads N", "heads of attention and the synthesizers", dest="n_heads")
    add("--d-ff N", "features inside the feed-forward network")
    add("--activation NAME", f"of the feed-forward network: {', '.join(ACTIVATIONS)}")
    add("--norm", "layer norm after or before each sublayer", choices=("post", "pre"))
    add("--ffn NAME", f"kind of feed-forward network: {', '.join(FFNS)}")
    matrices = "initial values of feed-forward networks and projections"
    add("--initializer NAME", f"{matrices}: {', '.join(INITIALIZERS)}; also 'normal(std=0.02)'")
    add("--pooling NAME", f"what the classifier sees: {', '.join(POOLINGS)}")
    outputs = f"kind of output, which decides the loss: {', '.join(LOSSES)} (default: softmax)"
    add("--output NAME", f"{outputs}; turns off the task's label smoothing")
    add("--positions", "what is added to the embeddings", choices=POSITIONS)
    add("--dropout P", "probability, at least 0 and below 1")
    add("--share-layers", "use one block for all layers", action="store_true", default=None)
    add("--dtype", "of weights and features", "float32", choices=("float32", "float64"))


def _add_training_options(group: Any) -> None:
    add = partial(option, group)
    add("--epochs N", "passes through the data")
    add("--batch-size N", "samples in a training step")
    add("--micro-batch N", "samples computed at a time; limits the memory")
    add("--lr X", "peak learning rate of Adam")
    names = f"of the learning rate: {', '.join(SCHEDULES)}; options as in 'cosine(final=0.1)'"
    add("--schedule NAME", f"{names}; total and warmup fit the task (default: cosine)")
    add("--weight-decay X", "decoupled, as in AdamW")
    add("--label-smoothing X", "at least 0 and below 1")
    add("--clip-norm X", "upper bound on the norm of the gradient")
    best = "what the best epoch is best by on the validation data (default: accuracy)"
    add("--metric NAME", best, choices=METRICS)
    add("--seed N", "of weights, batches, dropout and generated data", 0)
    add("--workers N", "CPU cores that share a batch, or auto", "auto", type=_workers)
    masks = "where dropout's masks are drawn: host gives the same run on every backend, device is"
    add("--masks", f"{masks} faster on a GPU", "host", choices=("host", "device"))


def _task_or_file(word: str) -> str:
    if (
        word in RECIPES
        or kind_of(Path(word)) is not None
        or Path(word).exists()
        or word.endswith(".npz")
    ):
        return word
    raise argparse.ArgumentTypeError(
        f"{word!r} is no task and no file; expected one of {', '.join(RECIPES)}, or a file that "
        f"ends in {', '.join(SUFFIXES)}, .npz{checks.did_you_mean(word, RECIPES)}"
    )


def _workers(word: str) -> int | str:
    if word == "auto":
        return word
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is neither a whole number nor 'auto'") from None


def run(options: argparse.Namespace) -> int:
    """Train, save and test a model on a file, or for each split of a task; print the results."""
    plugins = load_plugins(options.plugin)
    recipe = RECIPES.get(options.task)
    given = {n: v for n, v in vars(options).items() if n not in OF_THIS_CALL and v is not None}
    mixers = split_names(given.get("mixer", options.usual["mixer"]))
    # mean(power=2) becomes mean_power=2 in the folder's name.
    named = "-".join(re.sub(r"[^\w.=-]+", "_", name).strip("_") for name in mixers)
    task = options.task if recipe else Path(options.task).name.partition(".")[0] or "texts"
    splits = recipe.splits if recipe else ()
    folder = RunFolder(options.out or Path("runs") / f"{task}-{named}", splits)
    chosen = folder.options(
        given, options.usual, resume=options.resume, overwrite=options.overwrite
    )
    if options.resume:
        folder.check_plugins(plugins)
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
                found = evaluate(model, in_dtype_of(model, dataset.test), at_once)
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
        metric=options.metric or "accuracy",
        progress=not options.quiet and sys.stderr is not None and sys.stderr.isatty(),
        on_interrupt="return",
        checkpoint=checkpoint,
        resume=True,  # `RunFolder` has set an earlier run aside if this one does not go on with it
        **{name: v for name, v in training.items() if name not in ("schedule", "warmup")},
    )
