"""Files of models for raw samples, with all that they need to predict or to write.

`npformer.save` and `npformer.load` write and read them. A file holds a model for each member of the
ensemble; what turns samples into arrays, such as a vocabulary, is JSON in a tensor of bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import npformer.training.storage.models as checkpoint
from npformer.tasks.estimators.classifier import Classifier
from npformer.tasks.estimators.estimator import Estimator
from npformer.tasks.estimators.series_classifier import SeriesClassifier
from npformer.tasks.estimators.text_classifier import TextClassifier
from npformer.tasks.estimators.text_filler import TextFiller
from npformer.tasks.estimators.text_translator import TextTranslator
from npformer.tasks.estimators.text_writer import TextWriter
from npformer.training.own_loop import load_checkpoint
from npformer.training.storage.model_file import CheckpointError, check_keys
from npformer.training.storage.models import OTHERS, Kind, load, read_notes, save

PIPELINES: dict[str, type[Estimator]] = {
    estimator_class.__name__: estimator_class
    for estimator_class in (
        TextClassifier,
        SeriesClassifier,
        TextWriter,
        TextTranslator,
        TextFiller,
    )
}

__all__ = ["load", "load_checkpoint", "read_notes", "save"]

KEYS = ("class", "members", "classes", "arguments", "notes")
PREPARATION = "preparation"


def describe(raw: Estimator) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the description of a model for its file, and its tensors."""
    raw.check_trained()
    members = [checkpoint.rebuildable(model) for model in raw.models_]
    preparation = json.dumps(raw.preparation()).encode()
    tensors = {PREPARATION: np.frombuffer(preparation, dtype="uint8")}
    for i, model in enumerate(raw.models_):
        tensors |= {f"{i}.{name}": array for name, array in checkpoint.tensors_of(model).items()}
    description = {
        "class": type(raw).__name__,
        "members": members,
        "classes": raw.classes_.tolist() if isinstance(raw, Classifier) else None,
        "arguments": {"seed": raw.seed, "dtype": raw.model.dtype},
    }
    return description, tensors


def build(path: Path, description: Mapping[str, Any], tensors: dict[str, np.ndarray]) -> Estimator:
    """Return the model that a file describes; a CheckpointError names the file."""
    check_keys(path, description, KEYS)
    try:
        preparation = json.loads(tensors.pop(PREPARATION).tobytes())
        members, names, arguments = description["members"], None, dict(description["arguments"])
        kind = PIPELINES[description["class"]]
        if issubclass(kind, Classifier):
            names, arguments["members"] = description["classes"], len(members)
        raw = kind(**arguments)
        raw.restore(preparation)
        raw.check()
    except ImportError:
        raise
    except Exception as error:  # a file may contain anything
        raise CheckpointError(
            f"{path}: its description cannot be used: {str(error) or type(error).__name__}. If "
            "the file was edited, save the model again"
        ) from error
    models: list[Any] = []
    for i, member in enumerate(members):
        settings_of_member = {
            name.removeprefix(f"{i}."): array
            for name, array in tensors.items()
            if name.startswith(f"{i}.")
        }
        models.append(checkpoint.model_of(path, member, settings_of_member))
    try:
        raw.take(models, names)
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: its parts do not fit: {error}") from error
    return raw


for kind in PIPELINES.values():
    OTHERS[kind.__name__] = Kind(kind, describe, build)
