"""A run that `npformer train` left in a folder, as `export.exported` takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from npformer.learn.play.export import N_SAMPLES, in_words
from npformer.learn.play.seen import Names, estimator_names
from npformer.tasks.estimators import Classifier, Estimator, TextWriter, baselines
from npformer.tasks.sources.file_task import FileTask
from npformer.tasks.sources.recipes import RECIPES
from npformer.training.storage.models import checkpoint_name, load, read_notes

INK = (-1.0, 1.0)
"""Numbers that stand for white and black in the packaged digits."""

SETTINGS = ("d_model", "n_heads", "d_ff", "max_len", "activation", "norm", "positions", "dropout")

N_WRITTEN = 33


def trained(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the model in a run's folder, and the other arguments of `exported`.

    Raises FileNotFoundError if there is none.
    """
    path = folder / checkpoint_name()
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no run in {folder} yet (no {path.name}); expected a folder that npformer "
            "train or npformer play wrote. To begin a run, type: npformer play"
        )
    found, notes = load(path), read_notes(path)
    try:
        return _described(found, notes, folder)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}, its metrics.json or its history.json does not hold what npformer train "
            f"writes ({type(error).__name__}: {error}). Copy the folder again"
        ) from error


def _described(found: Any, notes: Any, folder: Path) -> tuple[Any, dict[str, Any]]:
    model = found.model if isinstance(found, Estimator) else found
    metrics, history = (_json(folder / f"{name}.json") for name in ("metrics", "history"))
    task, split = notes.get("task"), notes.get("split")
    what: dict[str, Any] = {"names": Names(), "facts": {"npformer": metrics.get("npformer")}}
    settings: dict[str, Any] = {"task": folder.name, "mixers": list(model.config.mixers())}
    kind = "ids" if getattr(model, "n_features", None) is None else "series"
    if isinstance(found, Estimator):
        what["names"] = estimator_names(found)
        if isinstance(found, TextWriter):
            what["data"] = own_text(found)
        elif isinstance(found, Classifier):
            what |= tested(found, task)
        if (n := len(found.models_)) > 1:
            what["facts"]["model"] = f"the first of {n}, whose answers npformer predict averages"
    elif isinstance(task, str):
        settings["task"] = task
        if task in RECIPES:
            what["data"] = RECIPES[task].load(str(split), int(notes["seed"]), model.dtype).test
        if task == "digits":
            kind, what["ink"] = "image", INK
        if getattr(model, "vocab_size", None):
            what["names"] = Names([str(id) for id in range(model.vocab_size)])
    settings |= {name: getattr(model.config, name) for name in SETTINGS}
    settings |= {"pooling": getattr(model, "pooling", None), "seed": notes.get("seed")}
    settings |= {k: v for k, v in (metrics.get("training") or {}).items() if np.isscalar(v)}
    scores = (metrics.get("splits") or {}).get(split, metrics.get("test") or {})
    accuracy = scores.get("test_accuracy", scores.get("accuracy"))
    if accuracy is not None:
        alone = (metrics.get("baselines") or {}).get(baselines.MAJORITY, {})
        of_one = alone.get("accuracy", scores.get("most_frequent"))
        what["facts"]["accuracy"] = in_words(accuracy, of_one)
    what["run"] = {"settings": settings, "kind_of_input": kind, "by_epoch": True}
    one = history.get(split) if isinstance(history, Mapping) else next(iter(history), None)
    what["points"] = points_of(one) if one else []
    return model, what


def points_of(history: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the points of the curves of a history: one for each epoch."""
    epochs = len(history["train_loss"])
    n_steps = max(sum(history["workers"].values()) // max(epochs, 1), 1)
    accuracy, loss = (history[f"validation_{of}"] or [None] * epochs for of in ("accuracy", "loss"))
    names = "loss", "lr", "accuracy", "validation_loss"
    rows = zip(history["train_loss"], history["lr"], accuracy, loss, strict=True)
    return [
        {"step": n_steps * k, "epoch": k, **dict(zip(names, row, strict=True))}
        for k, row in enumerate(rows, 1)
    ]


def tested(classifier: Any, task: Any) -> dict[str, Any]:
    """Return some samples of the test part; none if its file is gone or has changed."""
    with suppress(OSError, LookupError, TypeError, ValueError):
        parts, _ = FileTask.from_notes(task).parts()
        test = parts["test"] or parts["validation"]
        some = test.rows(range(min(len(test), N_SAMPLES)))
        x, mask = classifier.arrays(some.samples)
        texts = some.samples if isinstance(some.samples[0], str) else None
        return {"data": (x, classifier.names.numbers(some.labels), mask), "texts": texts}
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
