"""save and load: a model in a safetensors file, with its configuration as JSON; no pickle."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import asarray, checks, initializers, to_numpy
from npformer.models import Encoder, EncoderConfig
from npformer.text_encoder import TextEncoder
from npformer.training.architecture import check_rebuilt
from npformer.training.model_file import CheckpointError, read_model_file, write_model_file
from npformer.training.plugin_names import how_to_register, missing_names, plugin_names

Model = Encoder | TextEncoder | SequenceClassifier
MODELS: dict[str, type[Model]] = {
    "Encoder": Encoder,
    "TextEncoder": TextEncoder,
    "SequenceClassifier": SequenceClassifier,
}
"""The classes that can be rebuilt from a configuration, and so saved and loaded."""


def checkpoint_name(split: str = "") -> str:
    """Return the file name of a model in its training's folder; a second split has its own."""
    return f"model-{split}.safetensors" if split else "model.safetensors"


def save(
    model: Model, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None
) -> None:
    """Write a model to a safetensors file.

    The file holds every parameter under its dotted name, and the configuration in its metadata. If
    saving is interrupted, an existing file at the same place is left unchanged.

    `load` builds the model from its configuration. A model with layers that were replaced by hand
    is therefore refused, with a ValueError that names one.

    Parameters
    ----------
    model : Encoder, TextEncoder or SequenceClassifier
    path : str or path
        Usually ending in ``.safetensors``.
    notes : mapping, optional
        Further values to store, ready for JSON; `read_notes` returns them.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
    description = rebuildable(model)
    write_model_file(path, {**description, "notes": dict(notes or {})}, tensors_of(model))


def load(path: str | os.PathLike[str], backend: str = "numpy") -> Model:
    """Read a model that `save` wrote, and move it to a backend.

    Raises
    ------
    CheckpointError
        The file is damaged, cut short, or not npformer's; the message says which.
    """
    description, tensors = read_model_file(Path(path))
    return model_of(Path(path), description, tensors).to(backend)


def rebuildable(model: Model) -> dict[str, Any]:
    """Return a model's description, after checking that `model_of` could build it from that."""
    if type(model) not in MODELS.values():  # `load` could not build a subclass
        raise TypeError(
            f"model is a {type(model).__name__}; expected an Encoder, a TextEncoder or a "
            "SequenceClassifier, which can be rebuilt from their configuration. For other layers "
            "save layer.parameters() with safetensors.numpy.save_file"
        )
    description = model_description(model)
    check_rebuilt(model, _built(type(model), model.config, description["arguments"]))
    return description


def model_description(model: Model) -> dict[str, Any]:
    """Return a model's class, configuration and arguments, and the plugins that they need."""
    arguments = {"dtype": model.dtype} if isinstance(model, Encoder) else model.arguments()
    description: dict[str, Any] = {
        "class": type(model).__name__,
        "config": model.config.to_dict(),
        "arguments": arguments,
    }
    if from_plugins := plugin_names({**vars(model.config), **arguments}):
        description["registered"] = from_plugins
    return description


def tensors_of(model: Model) -> dict[str, np.ndarray]:
    """Return a copy of every parameter, on the host, by its dotted name."""
    return {name: to_numpy(p.value).copy() for name, p in model.named_parameters().items()}


def model_of(
    path: Path, description: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> Model:
    """Build a model from what a file holds; a CheckpointError names the file."""
    try:
        config = EncoderConfig.from_dict(description["config"])
        kind, arguments = description["class"], description["arguments"]
        if kind not in MODELS:
            raise ValueError(f"it holds a {kind}; expected one of {', '.join(MODELS)}")
        model = _built(MODELS[kind], config, arguments)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else error
        missing = missing_names(description)
        failure = CheckpointError(
            f"{path}: its description cannot be used: {problem}. {how_to_register(missing)}If the "
            "file was edited, save the model again"
        )
        failure.unregistered = tuple(missing)
        raise failure from error
    parameters = model.named_parameters()
    if problems := checks.misfits(tensors, parameters):
        raise CheckpointError(
            f"{path}: its tensors do not fit its configuration: {problems}. Was it edited? Save "
            "the model again"
        )
    for name, parameter in parameters.items():
        parameter.value[...] = asarray(tensors[name])
    return model


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the notes that were saved with a model; raises errors as `load` does."""
    description, _ = read_model_file(Path(path))
    return dict(description.get("notes", {}))


def _built(kind: type[Model], config: EncoderConfig, arguments: Mapping[str, Any]) -> Model:
    """Build a model without drawing its weights."""
    return kind(config, **arguments, seed=initializers.undrawn())
