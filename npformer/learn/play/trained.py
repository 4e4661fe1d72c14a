"""A run that `npformer train` left in a folder, as `export.exported` takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from npformer import data
from npformer.learn.play.seen import Names
from npformer.tasks.estimators import (
    Classifier,
    Estimator,
    TextClassifier,
    TextTranslator,
    TextWriter,
)
from npformer.training.storage.models import checkpoint_name, load, read_notes

TASKS = {
    name: getattr(data, name) for name in ("reverse", "majority", "recall", "pointer", "parity")
}
"""Generated tasks: functions of a seed."""

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
            f"{path} does not exist; expected a folder that npformer train or npformer play wrote"
        )
    found, notes = load(path), read_notes(path)
    raw = found if isinstance(found, Estimator) else None
    model = found if raw is None else raw.model
    metrics, history = (_json(folder / f"{name}.json") for name in ("metrics", "history"))
    task, split = notes.get("task"), notes.get("split")
    what: dict[str, Any] = {"names": Names(), "facts": {"npformer": metrics.get("npformer")}}
    settings: dict[str, Any] = {"task": folder.name, "mixers": list(model.config.mixers())}
    kind = "ids" if getattr(model, "n_features", None) is None else "series"
    if raw is None and isinstance(task, str):
        settings["task"] = task
        if task == "digits":
            digits = data.digits(str(split), model.dtype)
            what |= {"data": digits.test, "ink": INK}
            kind = "image"
        elif task in TASKS:
            what["data"] = TASKS[task](int(notes["seed"])).test
        if getattr(model, "vocab_size", None):
            what["names"] = Names([str(id) for id in range(model.vocab_size)])
    elif raw is not None:
        what |= _of_file(raw)
        if len(raw.models_) > 1:
            what["facts"]["model"] = f"the first of {len(raw.models_)}, whose answers are averaged"
    settings |= {name: getattr(model.config, name) for name in SETTINGS}
    settings |= {"pooling": getattr(model, "pooling", None), "seed": notes.get("seed")}
    settings |= {k: v for k, v in (metrics.get("training") or {}).items() if np.isscalar(v)}
    accuracy = (metrics.get("splits") or {}).get(split, metrics.get("test") or {})
    what["facts"] |= {k: _short(accuracy.get(k)) for k in ("test_accuracy", "accuracy")}
    what["run"] = {"settings": settings, "kind_of_input": kind, "by_epoch": True}
    one = history.get(split) if isinstance(history, Mapping) else next(iter(history), None)
    what["points"] = points_of(one) if one else []
    return model, what


def points_of(history: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the points of the curves of a history: one for each epoch."""
    epochs = len(history["train_loss"])
    n_steps = max(sum(history["workers"].values()) // max(epochs, 1), 1)
    accuracy, loss = (history[f"validation_{of}"] or [None] * epochs for of in ("accuracy", "loss"))
    return [
        {
            "step": n_steps * (k + 1),
            "epoch": k + 1,
            "loss": history["train_loss"][k],
            "lr": history["lr"][k],
            "accuracy": accuracy[k],
            "validation_loss": loss[k],
        }
        for k in range(epochs)
    ]


def _of_file(raw: Estimator) -> dict[str, Any]:
    """Return the names, and the samples, of a model of a file."""
    classes = [str(label) for label in raw.classes_] if isinstance(raw, Classifier) else None
    if isinstance(raw, TextClassifier):
        return {"names": Names(classes=classes, tokenizer=raw.tokenizer_)}
    if isinstance(raw, TextWriter):
        tokenizer = raw.tokenizer_
        begin = raw.ids("prompt", "\n")[:1] if raw.ids("prompt", "\n").size else np.array([0])
        rows = [raw.model.generate(begin, N_WRITTEN, seed=seed) for seed in range(4)]
        x = np.array([row[:-1] for row in rows])
        return {"names": Names(tokenizer=tokenizer), "data": (x, x)}  # what it has written
    if isinstance(raw, TextTranslator):
        source, target = raw.tokenizers_
        names = [list(map(each.token, range(each.vocab_size))) for each in (source, target)]
        return {"names": Names(names[0], targets=names[1])}
    return {"names": Names(classes=classes)}


def _short(value: Any) -> str | None:
    return None if value is None else f"{value:.4f}"


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}
