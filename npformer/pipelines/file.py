"""save and load: a classifier of raw samples in one file, with all that it needs to predict.

The file is a safetensors file as `npformer.training.checkpoint` writes it, with a model for each
member of the ensemble; what makes arrays of samples, a vocabulary for example, is a tensor of bytes
that holds JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import npformer.training.checkpoint as checkpoint
from npformer.core import checks
from npformer.core.files import check_place
from npformer.pipelines.class_names import ClassNames
from npformer.pipelines.raw_classifier import RawClassifier
from npformer.pipelines.series_classifier import SeriesClassifier
from npformer.pipelines.text_classifier import TextClassifier
from npformer.training.checkpoint import Model, checkpoint_name
from npformer.training.model_file import (
    CheckpointError,
    check_keys,
    read_description,
    read_model_file,
    write_model_file,
)

CLASSIFIERS: dict[str, type[RawClassifier]] = {
    "TextClassifier": TextClassifier,
    "SeriesClassifier": SeriesClassifier,
}
"""What is saved with more than a model, by the name of its class."""

KEYS = ("class", "members", "classes", "arguments", "notes", "registered")
PREPARATION = "preparation"


def save(
    model: Model | RawClassifier,
    path: str | os.PathLike[str],
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model, or a whole classifier with tokenizer and class names, to a safetensors file.

    Of a model, the file holds every parameter under its dotted name, and the configuration in its
    metadata. If saving is interrupted, an existing file at the same place is left unchanged.

    `load` builds the model from its configuration. A model with layers that were replaced by hand
    is therefore refused, with a ValueError that names one.

    Parameters
    ----------
    model : Encoder, TextEncoder, SequenceClassifier, TextClassifier or SeriesClassifier
    path : str or path
        Usually ending in ``.safetensors``.
    notes : mapping, optional
        Further values to store, ready for JSON; `read_notes` returns them.
    """
    if not isinstance(model, RawClassifier):
        checkpoint.save(model, path, notes)
        return
    path = checks.path("path", path)
    if notes is not None:
        checks.plain_values("notes", notes)
    check_place(path, checkpoint_name())
    names = model.names.names  # raises if there is no model
    described = [checkpoint.rebuildable(each) for each in model.models]
    preparation = json.dumps(model.preparation()).encode()
    tensors = {PREPARATION: np.frombuffer(preparation, dtype="uint8")}
    for i, each in enumerate(model.models):
        tensors |= {f"{i}.{name}": array for name, array in checkpoint.tensors_of(each).items()}
    description: dict[str, Any] = {
        "class": type(model).__name__,
        "members": described,
        "classes": names,
        "arguments": {"seed": model.seed, "dtype": model.dtype},
        "notes": dict(notes or {}),
    }
    if registered := described[0].get("registered"):
        description["registered"] = registered
    write_model_file(path, description, tensors)


def load(
    path: str | os.PathLike[str], backend: str = "numpy", *, force: bool = False
) -> Model | RawClassifier:
    """Read what `save` wrote, and move it to a backend.

    Parameters
    ----------
    force : bool
        Whether to load a file that changed after it was saved, with a `CheckpointWarning`.

    Raises
    ------
    CheckpointError
        The file is damaged, cut short, or not npformer's; the message says which.

    Warns
    -----
    CheckpointWarning
        Weights are NaN or infinite.
    """
    place = checks.path("path", path)
    checks.flag("force", force)
    kind = read_description(place, force=force).get("class")
    if not isinstance(kind, str) or kind not in CLASSIFIERS:
        return checkpoint.load(place, backend, force=force)
    description, tensors = read_model_file(place, force=force)
    check_keys(place, description, KEYS)
    try:
        preparation = json.loads(tensors.pop(PREPARATION).tobytes())
        members, names = description["members"], ClassNames(description["classes"])
        arguments = {**description["arguments"], "members": len(members)}
        classifier = CLASSIFIERS[kind].prepared(preparation, **arguments)
    except ImportError:
        raise
    except Exception as error:  # a file may say anything
        raise CheckpointError(
            f"{place}: its description cannot be used: {error or type(error).__name__}. If the "
            "file was edited, save the classifier again"
        ) from error
    for i, member in enumerate(members):
        own = {
            name.removeprefix(f"{i}."): array
            for name, array in tensors.items()
            if name.startswith(f"{i}.")
        }
        found = checkpoint.model_of(place, member, own)
        classifier.models.append(found.to(backend))  # type: ignore[arg-type]
    classifier._names = names
    return classifier
