"""npformer train TASK: train a model on each split of a task, and test it."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import fields
from typing import Any

from npformer.cli import common
from npformer.cli.model_settings import mixer_setting, options_typed
from npformer.cli.play import what_to_type
from npformer.cli.run_folder import REPORT
from npformer.cli.training import VERSIONS, Training
from npformer.core import checks, use_precision
from npformer.models import EncoderConfig
from npformer.tasks.estimators.defaults import fit_arguments
from npformer.tasks.sources.recipes import Recipe
from npformer.training.batches import batch_at_evaluation
from npformer.training.evaluation import evaluate
from npformer.training.fit import fit
from npformer.training.history import History
from npformer.training.storage.models import checkpoint_name, save

MODEL = {"pooling", "output", *(field.name for field in fields(EncoderConfig))}


NEXT = """
look inside:     npformer look {0}
compare:         npformer train {1} --mixer {2}
watch it learn:  {3}"""
"""What to do next with a trained model: {0} is its folder, {3} what opens the page."""


def run(training: Training, recipe: Recipe) -> int:
    """Train, save and test a model for each split, and print the results."""
    options = training.options
    settings = dict(recipe.training)
    if options.output is not None:
        settings["label_smoothing"] = 0.0  # not every loss has labels to smooth
    settings |= options_typed(options, (*settings, "schedule"))
    splits = _choose_splits(options, recipe)
    metrics: dict[str, Any] = {
        "task": recipe.name,
        "mixer": mixer_setting(options.mixer),
        "seed": options.seed,
        "backend": options.backend,
        "precision": options.precision,
        "dtype": options.dtype,
        "device": common.device_of(options),
        **VERSIONS,
        "training": settings,
        "plugins": training.folder.plugins,
        "splits": {},
    }
    histories: dict[str, History] = {}
    training.say(f"npformer {VERSIONS['npformer']} on {metrics['device']}\n")
    training.say(f"{recipe.name}: {recipe.summary}")
    with training.folder.begun(training.chosen):
        for split in splits:
            status = _train_on_split(training, recipe, split, metrics, histories)
            if status is not None:
                return status
        _finish(training, metrics["splits"], histories)
    return 0


def _choose_splits(options: argparse.Namespace, recipe: Recipe) -> tuple[str, ...]:
    """Return the splits that --split names: by default, all of the task."""
    if options.split in (None, "both"):
        return (*recipe.splits,)
    checks.choice(f"--split of task {recipe.name}", options.split, (*recipe.splits, "both"))
    return (options.split,)


def _train_on_split(
    training: Training,
    recipe: Recipe,
    split: str,
    metrics: dict[str, Any],
    histories: dict[str, History],
) -> int | None:
    """Train, save and test a model, and write down how good it is in `metrics` and `histories`.

    Returns the exit status if the training was stopped, otherwise None.
    """
    options, settings = training.options, metrics["training"]
    changes = options_typed(options, MODEL) | {"mixer": mixer_setting(options.mixer)}
    data = recipe.load(split, options.seed, options.dtype)
    model = recipe.model(data, options.seed, options.dtype, **changes).to(options.backend)
    if "parameters" not in metrics:  # those of other splits are the same
        metrics |= {"parameters": model.n_parameters(), "config": model.config.to_dict()}
        training.describe(model, data.train[0][:1])
    sizes = [f"{len(x):,}" for x, _ in (data.train, data.validation, data.test)]
    in_words = f"{sizes[0]} training, {sizes[1]} validation, {sizes[2]} test"
    training.say(f"{split} split: {in_words}; {recipe.splits[split]}")
    arguments = {"schedule": "cosine", "metric": "accuracy", **settings}
    arguments |= {"seed": options.seed, **training.arguments(split)}
    arguments = fit_arguments(arguments, len(data.train[0]))
    history = fit(model, data.train, validation=data.validation, **arguments)
    if history.best_epoch is not None:
        # Saved before the test, which may be interrupted or run out of memory.
        _save(training, model, split, history, metrics, histories)
    if (status := training.status(history, settings["epochs"])) is not None:
        return status
    batch_size = batch_at_evaluation(settings["batch_size"], options.micro_batch)
    with use_precision(options.precision, options.backend):
        evaluation = evaluate(model, data.test, batch_size, communicator=options.ranks)
    metrics["splits"][split] |= {
        "test_accuracy": evaluation.accuracy,
        "test_loss": evaluation.loss,
        "test_labels": evaluation.labels,
    }
    training.write(metrics, histories)
    return None


def _save(
    training: Training,
    model: Any,
    split: str,
    history: History,
    metrics: dict[str, Any],
    histories: dict[str, History],
) -> None:
    """Save a model in place of an older one, and write down how its training went."""
    for file in ("curves.png", REPORT):  # of an older model
        (training.path / file).unlink(missing_ok=True)
    name = checkpoint_name(split if histories else "")
    notes = {
        "split": split,
        "task": metrics["task"],
        "seed": metrics["seed"],
        "plugins": metrics["plugins"],
    }
    save(model, training.path / name, notes=notes, overwrite=True)
    histories[split] = history
    metrics["splits"][split] = {
        "validation_accuracy": max(history.validation_accuracy, default=None),
        "best_epoch": history.best_epoch,
        "epochs": len(history.train_loss),
        "stopped": history.stopped,
        "seconds": round(sum(history.seconds), 2),
        "workers": history.workers,
        "file": name,
    }
    training.write(metrics, histories)


def _finish(training: Training, splits: dict[str, Any], histories: dict[str, History]) -> None:
    """Draw the curves, and print the results."""
    tested = {split: result["test_accuracy"] for split, result in splits.items()}
    curves = training.draw_curves(histories, tested)
    print()
    for split, result in splits.items():
        where = "" if split == "generated" else f" ({split} split)"
        workers = max(result["workers"], key=result["workers"].__getitem__)  # of most steps
        print(
            f"test accuracy {result['test_accuracy']:.4f}{where}, weights of epoch "
            f"{result['best_epoch']} of {result['epochs']}, {result['seconds']:.1f} s, {workers}"
        )
    files = [*(result["file"] for result in splits.values()), "history.json", "metrics.json"]
    print(f"{training.path}: {', '.join(files)}; {curves}")
    other = "fourier" if training.options.mixer == "attention" else "attention"
    where = shlex.quote(str(training.path))
    training.say(NEXT.format(where, training.options.task, other, what_to_type()))
    training.folder.forget_replaced()
