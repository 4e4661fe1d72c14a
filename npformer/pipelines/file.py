"""Classifiers of raw samples in one file, with all that they need to predict.

`npformer.save` and `npformer.load` write and read them. The file has a model for each member of the
ensemble; what makes arrays of samples, a vocabulary for example, is a tensor of bytes with JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import npformer.storage.models as checkpoint
from npformer.pipelines.class_names import ClassNames
from npformer.pipelines.raw_classifier import RawClassifier
from npformer.pipelines.series_classifier import SeriesClassifier
from npformer.pipelines.text_classifier import TextClassifier
from npformer.storage.model_file import CheckpointError, check_keys
from npformer.storage.models import OTHERS, Kind

CLASSIFIERS: dict[str, type[RawClassifier]] = {
    "TextClassifier": TextClassifier,
    "SeriesClassifier": SeriesClassifier,
}

KEYS = ("class", "members", "classes", "arguments", "notes")
PREPARATION = "preparation"


def described(classifier: RawClassifier) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a file says of a classifier, and its tensors."""
    names = classifier.names.names  # raises if there is no model
    members = [checkpoint.rebuildable(model) for model in classifier.models]
    preparation = json.dumps(classifier.preparation()).encode()
    tensors = {PREPARATION: np.frombuffer(preparation, dtype="uint8")}
    for i, model in enumerate(classifier.models):
        tensors |= {f"{i}.{name}": array for name, array in checkpoint.tensors_of(model).items()}
    description = {
        "class": type(classifier).__name__,
        "members": members,
        "classes": names,
        "arguments": {"seed": classifier.seed, "dtype": classifier.dtype},
    }
    return description, tensors


def built(
    path: Path, description: Mapping[str, Any], tensors: dict[str, np.ndarray]
) -> RawClassifier:
    """Return the classifier that a file describes; a CheckpointError names the file."""
    check_keys(path, description, KEYS)
    try:
        preparation = json.loads(tensors.pop(PREPARATION).tobytes())
        members, names = description["members"], ClassNames(description["classes"])
        arguments = {**description["arguments"], "members": len(members)}
        classifier = CLASSIFIERS[description["class"]].prepared(preparation, **arguments)
    except ImportError:
        raise
    except Exception as error:  # a file may say anything
        raise CheckpointError(
            f"{path}: its description cannot be used: {error or type(error).__name__}. If the "
            "file was edited, save the classifier again"
        ) from error
    models: list[Any] = []
    for i, member in enumerate(members):
        own = {
            name.removeprefix(f"{i}."): array
            for name, array in tensors.items()
            if name.startswith(f"{i}.")
        }
        models.append(checkpoint.model_of(path, member, own))
    classifier.take(models, names)
    return classifier


for kind in CLASSIFIERS.values():
    OTHERS[kind.__name__] = Kind(kind, described, built)
