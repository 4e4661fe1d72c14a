"""A run that `npformer train` left in a folder, as `export.exported` takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from npformer.learn.play.export import N_SAMPLES, describe_accuracy
from npformer.learn.play.model_answers import Names, estimator_names
from npformer.tasks.estimators import Classifier, Estimator, TextWriter, baselines
from npformer.tasks.sources.file_task import FileTask
from npformer.tasks.sources.recipes import RECIPES
from npformer.training.storage.models import checkpoint_name, load, read_notes

INK = (-1.0, 1.0)
"""Numbers that stand for white and black in the packaged digits."""

SETTINGS = ("d_model", "n_heads", "d_ff", "max_len", "activation", "norm", "positions", "dropout")

N_WRITTEN = 33


def trained(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the model in a run's folder, and the other arguments of `page_of_model`.

    Raises FileNotFoundError if there is none.
    """
    path = folder / checkpoint_name()
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no run in {folder} yet (no {path.name}); expected a folder that npformer "
            "train or npformer play wrote. To begin a run, type: npformer play"
        )
    saved, notes = load(path), read_notes(path)
    try:
        return _describe(saved, notes, folder)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}, its metrics.json or its history.json does not hold what npformer train "
            f"writes ({type(error).__name__}: {error}). Copy the folder again"
        ) from error


def _describe(saved: Any, notes: Any, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the saved model, or that of a saved estimator, and what else `page_of_model` takes."""
    model = saved.model if isinstance(saved, Estimator) else saved
    metrics = _json(folder / "metrics.json")
    histories = _json(folder / "history.json")
    task, split = notes.get("task"), notes.get("split")
    arguments: dict[str, Any] = {"names": Names(), "facts": {"npformer": metrics.get("npformer")}}
    title = folder.name
    kind_of_input = "ids" if getattr(model, "n_features", None) is None else "series"
    if isinstance(saved, Estimator):
        arguments |= _describe_estimator(saved, task)
        n = len(saved.models_)
        if n > 1:
            averaged = f"the first of {n}, whose answers npformer predict averages"
            arguments["facts"]["model"] = averaged
    elif isinstance(task, str):
        title = task
        arguments |= _describe_task(task, model, notes)
        if task == "digits":
            kind_of_input = "image"
    accuracy = _accuracy(metrics, split)
    if accuracy is not None:
        arguments["facts"]["accuracy"] = accuracy
    arguments["run"] = {
        "settings": _settings(title, model, notes, metrics),
        "kind_of_input": kind_of_input,
        "by_epoch": True,
    }
    if isinstance(histories, Mapping):  # by split
        history = histories.get(split)
    else:  # of each member
        history = next(iter(histories), None)
    arguments["points"] = points_of(history) if history else []
    return model, arguments


def _describe_estimator(estimator: Estimator, task: Any) -> dict[str, Any]:
    """Return the names and the samples of an estimator."""
    names = estimator_names(estimator)
    if isinstance(estimator, TextWriter):
        return {"names": names, "data": own_text(estimator)}
    if isinstance(estimator, Classifier):
        return {"names": names, **test_samples(estimator, task)}
    return {"names": names}


def _describe_task(task: str, model: Any, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names and the samples of a model of a named task."""
    arguments: dict[str, Any] = {}
    if task in RECIPES:
        split, seed = str(notes.get("split")), int(notes["seed"])
        arguments["data"] = RECIPES[task].load(split, seed, model.dtype).test
    if task == "digits":
        arguments["ink"] = INK
    if getattr(model, "vocab_size", None):
        arguments["names"] = Names([str(id) for id in range(model.vocab_size)])
    return arguments


def _settings(
    title: str, model: Any, notes: Mapping[str, Any], metrics: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a page lists of a model and its training."""
    training = metrics.get("training") or {}
    return {
        "task": title,
        "mixers": list(model.config.mixers()),
        **{name: getattr(model.config, name) for name in SETTINGS},
        "pooling": getattr(model, "pooling", None),
        "seed": notes.get("seed"),
        **{name: value for name, value in training.items() if np.isscalar(value)},
    }


def _accuracy(metrics: Mapping[str, Any], split: Any) -> str | None:
    """Return a sentence on the accuracy on test data, or None; it names that of one answer, too."""
    scores = (metrics.get("splits") or {}).get(split, metrics.get("test") or {})
    accuracy = scores.get("test_accuracy", scores.get("accuracy"))
    if accuracy is None:
        return None
    majority = (metrics.get("baselines") or {}).get(baselines.MAJORITY, {})
    return describe_accuracy(accuracy, majority.get("accuracy", scores.get("most_frequent")))


def points_of(history: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the points of the curves of a history: one for each epoch."""
    epochs = len(history["train_loss"])
    steps_an_epoch = max(sum(history["workers"].values()) // max(epochs, 1), 1)
    accuracies = history["validation_accuracy"] or [None] * epochs
    validation_losses = history["validation_loss"] or [None] * epochs
    rows = zip(history["train_loss"], history["lr"], accuracies, validation_losses, strict=True)
    return [
        {
            "step": steps_an_epoch * epoch,
            "epoch": epoch,
            "loss": loss,
            "lr": lr,
            "accuracy": accuracy,
            "validation_loss": validation_loss,
        }
        for epoch, (loss, lr, accuracy, validation_loss) in enumerate(rows, 1)
    ]


def test_samples(classifier: Any, task: Any) -> dict[str, Any]:
    """Return some samples of the test part; none if its file is gone or has changed."""
    with suppress(OSError, LookupError, TypeError, ValueError):
        samples_by_name, _ = FileTask.from_notes(task).parts()
        test = samples_by_name["test"] or samples_by_name["validation"]
        samples = test.rows(range(min(len(test), N_SAMPLES)))
        x, mask = classifier.arrays(samples.samples)
        texts = samples.samples if isinstance(samples.samples[0], str) else None
        return {"data": (x, classifier.names.numbers(samples.labels), mask), "texts": texts}
    return {}


def own_text(writer: TextWriter) -> tuple[np.ndarray, np.ndarray]:
    """Return what a model has written by itself, in place of samples."""
    ids = writer.ids("prompt", "\n")[:1]
    begin = ids if ids.size else np.array([0])
    rows = [writer.model.generate(begin, N_WRITTEN, seed=seed) for seed in range(4)]
    x = np.array([row[:-1] for row in rows])
    return x, x


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}
