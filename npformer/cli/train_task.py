"""npformer train TASK: train a model on each split of a task, and test it."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import Any

from npformer.cli import common
from npformer.cli.model_settings import given_options, mixer_setting
from npformer.cli.options import NEXT
from npformer.cli.run_folder import REPORT
from npformer.cli.training import VERSIONS, Training
from npformer.core import checks, use_precision
from npformer.models import EncoderConfig
from npformer.tasks.estimators.defaults import filled
from npformer.tasks.sources.recipes import Recipe
from npformer.training.batches import batch_at_evaluation
from npformer.training.evaluation import evaluate
from npformer.training.fit import fit
from npformer.training.history import History
from npformer.training.storage.models import checkpoint_name, save

MODEL = {"pooling", "output", *(field.name for field in fields(EncoderConfig))}


def run(training: Training, recipe: Recipe) -> int:
    """Train, save and test a model for each split, and print the results."""
    options, splits = training.options, (*recipe.splits,)
    settings = dict(recipe.training)
    if options.output is not None:
        settings["label_smoothing"] = 0.0  # not every loss has labels to smooth
    settings |= given_options(options, (*settings, "schedule"))
    if options.split not in (None, "both"):
        checks.choice(f"--split of task {recipe.name}", options.split, (*recipe.splits, "both"))
        splits = (options.split,)
    changes = given_options(options, MODEL) | {"mixer": mixer_setting(options.mixer)}
    metrics: dict[str, Any] = {
        "task": recipe.name,
        "mixer": changes["mixer"],
        **{name: getattr(options, name) for name in ("seed", "backend", "precision", "dtype")},
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
            data = recipe.load(split, options.seed, options.dtype)
            model = recipe.model(data, options.seed, options.dtype, **changes).to(options.backend)
            if split == splits[0]:
                metrics |= {"parameters": model.n_parameters(), "config": model.config.to_dict()}
                training.describe(model, data.train[0][:1])
            n = [f"{len(x):,}" for x, _ in (data.train, data.validation, data.test)]
            parts = f"{n[0]} training, {n[1]} validation, {n[2]} test"
            training.say(f"{split} split: {parts}; {recipe.splits[split]}")
            usual = {"schedule": "cosine", "metric": "accuracy", **settings}
            usual |= {"seed": options.seed, **training.arguments(split)}
            usual = filled(usual, len(data.train[0]))
            history = fit(model, data.train, validation=data.validation, **usual)
            if history.best_epoch is not None:
                # Saved before the test, which may be interrupted or run out of memory.
                for file in ("curves.png", REPORT):  # of an older model
                    (training.path / file).unlink(missing_ok=True)
                name = checkpoint_name(split if histories else "")
                notes = {each: metrics[each] for each in ("task", "seed", "plugins")}
                save(model, training.path / name, notes={"split": split, **notes})
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
            if (status := training.status(history, settings["epochs"])) is not None:
                return status
            at_once = batch_at_evaluation(settings["batch_size"], options.micro_batch)
            with use_precision(options.precision, options.backend):
                found = evaluate(model, data.test, at_once, communicator=options.ranks)
            tested = {f"test_{n}": getattr(found, n) for n in ("accuracy", "loss", "labels")}
            metrics["splits"][split] |= tested
            training.write(metrics, histories)
        _finish(training, metrics["splits"], histories)
    return 0


def _finish(training: Training, splits: dict[str, Any], histories: dict[str, History]) -> None:
    """Draw the curves, and print the results."""
    tested = {split: found["test_accuracy"] for split, found in splits.items()}
    curves = training.draw_curves(histories, tested)
    print()
    for split, found in splits.items():
        where = "" if split == "generated" else f" ({split} split)"
        workers = max(found["workers"], key=found["workers"].__getitem__)  # of most steps
        print(
            f"test accuracy {found['test_accuracy']:.4f}{where}, weights of epoch "
            f"{found['best_epoch']} of {found['epochs']}, {found['seconds']:.1f} s, {workers}"
        )
    files = [*(found["file"] for found in splits.values()), "history.json", "metrics.json"]
    print(f"{training.path}: {', '.join(files)}; {curves}")
    other = "fourier" if training.options.mixer == "attention" else "attention"
    where = shlex.quote(str(training.path))
    training.say(str(NEXT["task"]).format(where, training.options.task, other))
    training.folder.forget_replaced()
