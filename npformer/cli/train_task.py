"""npformer train TASK: train a model on each split of a task, and test it."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from npformer.cli import common
from npformer.cli.file_kinds import given_options, mixer_setting
from npformer.cli.load_model import in_dtype_of
from npformer.cli.recipes.recipes import Recipe
from npformer.cli.run_files import (
    VERSIONS,
    draw_curves,
    settings_of_fit,
    status_of,
    talk,
)
from npformer.cli.run_folder import REPORT, RunFolder, write_json
from npformer.core import checks, use_precision
from npformer.data import Dataset
from npformer.models import EncoderConfig
from npformer.optim import SCHEDULES, schedule_for
from npformer.tasks.estimators.defaults import filled
from npformer.training.batches import batch_at_evaluation
from npformer.training.evaluation import evaluate
from npformer.training.fit import fit
from npformer.training.history import History
from npformer.training.inspection.summary import summary
from npformer.training.storage.models import checkpoint_name, save
from npformer.training.trainable import SequenceClassifier

MODEL = {"pooling", "output", *(field.name for field in fields(EncoderConfig))}
MORE = ("seed", "workers", "micro_batch", "precision", "masks", "no_decay", "metric")


def run(
    options: argparse.Namespace,
    recipe: Recipe,
    folder: RunFolder,
    chosen: dict[str, Any],
    plugins: list[str],
) -> int:
    """Train with all options filled in."""
    splits, training, say = recipe.splits, _training(recipe, options), talk(options)
    if options.split not in (None, "both"):
        checks.choice(f"--split of task {recipe.name}", options.split, (*recipe.splits, "both"))
        splits = (options.split,)
    changes = given_options(options, MODEL) | {"mixer": mixer_setting(options.mixer)}
    device = common.device_of(options)
    metrics: dict[str, Any] = {
        "task": recipe.name,
        "mixer": changes["mixer"],
        **{name: getattr(options, name) for name in ("seed", "backend", "precision", "dtype")},
        "device": device,
        **VERSIONS,
        "training": training,
        "plugins": plugins,
        "splits": {},
    }
    say(f"npformer {VERSIONS['npformer']} on {device}")

    def made(split: str) -> tuple[Dataset, SequenceClassifier]:
        dataset = recipe.load(split, options.seed)
        model = recipe.model(dataset, options.seed, options.dtype, **changes)
        return dataset, model.to(options.backend)

    dataset, model = made(splits[0])  # a model that cannot be built leaves no folder
    histories: dict[str, History] = {}
    with folder.begun(chosen, plugins, resume=options.resume):
        metrics |= {"parameters": model.n_parameters(), "config": model.config.to_dict()}
        x, _ = in_dtype_of(model, dataset.train)
        say(f"\n{recipe.name}: {recipe.summary}\n\n{summary(model, x[:1])}\n")
        for split in splits:
            if split != splits[0]:
                dataset, model = made(split)
            data = [
                in_dtype_of(model, p) for p in (dataset.train, dataset.validation, dataset.test)
            ]
            if len(splits) > 1:
                train, validation, test = (f"{len(x):,}" for x, _ in data)
                say(f"{split} split: {train} training, {validation} validation, {test} test")
            settings = training | given_options(options, MORE)
            settings |= settings_of_fit(options, folder, split)
            settings = filled(
                {"schedule": "cosine", "metric": "accuracy", **settings}, len(data[0][0])
            )
            history = fit(model, data[0], validation=data[1], **settings)
            if history.best_epoch is not None:
                # Saved before the test, which may be interrupted or run out of memory.
                _save(split, model, history, folder, metrics, histories)
            status = status_of(history, training["epochs"], recipe.name, folder.path)
            if status is not None:
                return status
            at_once = batch_at_evaluation(training["batch_size"], options.micro_batch)
            with use_precision(options.precision, options.backend):
                found = evaluate(model, data[2], at_once, communicator=options.ranks)
            tested = {"accuracy": found.accuracy, "loss": found.loss, "labels": found.labels}
            metrics["splits"][split] |= {f"test_{name}": value for name, value in tested.items()}
            _write(folder, metrics, histories)
        _finish(folder, metrics, histories)
    return 0


def _training(recipe: Recipe, options: argparse.Namespace) -> dict[str, Any]:
    """Return the task's settings, replaced by those that were given on the command line."""
    training = dict(recipe.training)
    if options.output is not None:
        training["label_smoothing"] = 0.0  # not every loss has labels to smooth
    training |= given_options(options, (*recipe.training, "schedule"))
    checks.positive("--epochs", training["epochs"])
    checks.positive("--batch-size", training["batch_size"])
    if options.schedule is not None:
        SCHEDULES.parse(options.schedule, "--schedule")
        schedule_for(options.schedule, steps=1_000_000, warmup=100_000)  # finds errors early
    return training


def _save(
    split: str,
    model: SequenceClassifier,
    history: History,
    folder: RunFolder,
    metrics: dict[str, Any],
    histories: dict[str, History],
) -> None:
    """Save a model, and what is known about it before it is tested."""
    name = checkpoint_name(split if histories else "")
    notes = {"task": metrics["task"], "split": split, "seed": metrics["seed"]}
    if metrics["plugins"]:
        notes["plugins"] = metrics["plugins"]
    if not histories:  # so that no file describes an older model than the one beside it
        for file in ("metrics.json", "history.json", "curves.png", REPORT):
            (folder.path / file).unlink(missing_ok=True)
    save(model, folder.path / name, notes=notes)
    histories[split] = history
    metrics["splits"][split] = {
        **dict.fromkeys(("test_accuracy", "test_loss", "test_labels")),  # until it is tested
        "validation_accuracy": max(history.validation_accuracy, default=None),
        "best_epoch": history.best_epoch,
        "epochs": len(history.train_loss),
        "stopped": history.stopped,
        "seconds": round(sum(history.seconds), 2),
        "workers": history.workers,
        "file": name,
    }
    _write(folder, metrics, histories)


def _write(folder: RunFolder, metrics: dict[str, Any], histories: dict[str, History]) -> None:
    curves = {split: history.to_dict() for split, history in histories.items()}
    write_json(folder.path / "history.json", curves)
    write_json(folder.path / "metrics.json", metrics)


def _finish(folder: RunFolder, metrics: dict[str, Any], histories: dict[str, History]) -> None:
    """Draw the curves, and print the results."""
    splits, mixer = metrics["splits"], metrics["mixer"]
    mixers = mixer if isinstance(mixer, str) else ", ".join(mixer)
    title = f"{metrics['task']}, {mixers}, seed {metrics['seed']}"
    tested = {split: found["test_accuracy"] for split, found in splits.items()}
    curves = draw_curves(histories, tested, title, folder.path)
    print()
    for split, found in splits.items():
        where = "" if split == "generated" else f" ({split} split)"
        workers = max(found["workers"], key=found["workers"].__getitem__)  # of most steps
        print(
            f"test accuracy {found['test_accuracy']:.4f}{where}, weights of epoch "
            f"{found['best_epoch']} of {found['epochs']}, {found['seconds']:.1f} s, {workers}"
        )
    files = [*(found["file"] for found in splits.values()), "history.json", "metrics.json"]
    print(f"{folder.path}: {', '.join(files)}; {curves}")
    folder.forget_replaced()
