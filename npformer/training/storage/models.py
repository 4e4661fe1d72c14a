"""save and load: a model in a safetensors file, with its configuration as JSON; no pickle."""

import os
import warnings
from collections.abc import Callable, Mapping
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Layer, a_type, asarray, checks, to_numpy
from npformer.models import Encoder, EncoderConfig
from npformer.training.storage.architecture import check_rebuilt
from npformer.training.storage.files import NameTakenError
from npformer.training.storage.model_file import (
    CheckpointError,
    CheckpointWarning,
    check_keys,
    is_npformers,
    read_description,
    read_model_file,
    write_model_file,
)
from npformer.training.storage.outputs import check_place
from npformer.training.storage.plugin_names import how_to_register, missing_names, plugin_names
from npformer.training.storage.stated_sizes import check_stated, misfit, undrawn_for

MODELS: dict[str, type[Any]] = {"Encoder": Encoder}
"""The classes that can be rebuilt from a configuration, by name. Higher floors add theirs."""


class Kind(NamedTuple):
    """What else can be saved: how it is described, and built from what a file holds."""

    type: type[Any]
    describe: Callable[[Any], tuple[dict[str, Any], dict[str, np.ndarray]]]
    build: Callable[[Path, Mapping[str, Any], dict[str, np.ndarray]], Any]


OTHERS: dict[str, Kind] = {}
"""What is saved with more than a model, by the name of its class. Higher floors add to it."""

KEYS = ("class", "config", "arguments", "notes", "registered", "frozen")
"""What a model's description has."""


def checkpoint_name(split: str = "") -> str:
    """Return the file name of a model in its training's folder; a second split has its own."""
    return f"model-{split}.safetensors" if split else "model.safetensors"


def save(
    model: Any,
    path: str | os.PathLike[str],
    notes: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a model, or a classifier with its tokenizer and class names, to a safetensors file.

    The file holds every parameter under its dotted name, and the configuration in its metadata. If
    saving is interrupted, an existing file at the same place is left unchanged. A file that
    npformer wrote is replaced; any other only with `overwrite`.

    `load` builds the model from its configuration. A model with layers that were replaced by hand
    is therefore refused, with a ValueError that names one.

    Parameters
    ----------
    model : Encoder, TextEncoder, SequenceClassifier, TextClassifier or SeriesClassifier
    path : str or path
        Usually ending in ``.safetensors``.
    notes : mapping, optional
        Further values to store, ready for JSON; `read_notes` returns them.
    overwrite : bool
        Whether to replace an existing file that npformer did not write.
    """
    path = checks.path("path", path)
    if notes is not None:
        checks.plain_values("notes", notes)
    checks.flag("overwrite", overwrite)
    replaces = overwrite or is_npformers(path)
    check_place(path, checkpoint_name(), overwrite=replaces, regular=True)
    kind = OTHERS.get(type(model).__name__)
    if kind is not None and type(model) is kind.type:
        description, tensors = kind.describe(model)
    else:
        description, tensors = rebuildable(model), tensors_of(model)
    description = {**description, "notes": dict(notes or {})}
    try:
        write_model_file(path, description, tensors, overwrite=replaces)
    except NameTakenError as error:
        if not is_npformers(path):
            raise
        error.written.replace(path)  # another process has just saved a model there


def load(path: str | os.PathLike[str], backend: str = "numpy", *, force: bool = False) -> Any:
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
    path = checks.path("path", path)
    checks.flag("force", force)
    description, tensors = read_model_file(path, force=force)
    name = description.get("class")
    kind = OTHERS.get(name) if isinstance(name, str) else None
    build = model_of if kind is None else kind.build
    return build(path, description, tensors).to(backend)


def rebuildable(model: Any) -> dict[str, Any]:
    """Return a model's description, after checking that `model_of` could build it from that."""
    if type(model) not in MODELS.values():  # `load` could not build a subclass
        raise TypeError(
            f"model is {a_type(model)}; expected an Encoder, a TextEncoder or a "
            "SequenceClassifier, which can be rebuilt from their configuration. For other layers "
            "save layer.parameters() with safetensors.numpy.save_file"
        )
    description = model_description(model)
    tensors, arguments = model.named_parameters(), description["arguments"]
    check_stated(description["config"], arguments, tensors)  # `model_of` will ask, too
    check_rebuilt(model, type(model)(model.config, **arguments, seed=undrawn_for(tensors)))
    return description


def model_description(model: Layer) -> dict[str, Any]:
    """Return a model's class, configuration and arguments, and the plugins that they need.

    A user's model may have neither; its class and the shapes of its parameters stand for them.
    """
    config, arguments = getattr(model, "config", None), getattr(model, "arguments", None)
    if isinstance(config, EncoderConfig):
        settings = config.to_dict()
        settings_by_name = {"dtype": model.dtype} if arguments is None else arguments()
    else:
        settings = {}
        settings_by_name = {name: list(p.shape) for name, p in model.named_parameters().items()}
    return {
        "class": type(model).__name__,
        "config": settings,
        "arguments": settings_by_name,
        "registered": plugin_names({**settings, **settings_by_name}),
        "frozen": list(model.frozen()),
    }


def tensors_of(model: Layer) -> dict[str, np.ndarray]:
    """Return a copy of every parameter, on the host, by its dotted name."""
    return {name: to_numpy(p.value).copy() for name, p in model.named_parameters().items()}


def model_of(path: Path, description: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Any:
    """Build a model from what a file holds; a CheckpointError names the file."""
    try:
        model = _build_model(path, description, tensors)
    except CheckpointError:
        raise
    except Exception as error:  # a file may say anything, also to the builders of plugins
        problem = str(error) or type(error).__name__
        missing = missing_names(description)
        failure = CheckpointError(
            f"{path}: its description cannot be used: {problem}. {how_to_register(missing)}If the "
            "file was edited, save the model again"
        )
        failure.unregistered = tuple(missing)
        raise failure from error
    fill(path, model, tensors)
    return model


def fill(
    path: Path, model: Layer, tensors: Mapping[str, np.ndarray], *, given: bool = False
) -> None:
    """Give a model the weights that a file holds; CheckpointError says what does not fit."""
    parameters = model.named_parameters()
    _refuse_misfits(path, checks.misfits(tensors, parameters), given=given)
    for name, parameter in parameters.items():
        parameter.value[...] = asarray(tensors[name], model.backend)
    _tell_non_finite(path, {name: tensors[name] for name in parameters})


def read_notes(path: str | os.PathLike[str], *, force: bool = False) -> dict[str, Any]:
    """Return the notes that were saved with a model; raises errors as `load` does.

    The file is read as a whole, for its checksum; no model is built.
    """
    path = checks.path("path", path)
    checks.flag("force", force)
    notes = read_description(path, force=force).get("notes")
    if not isinstance(notes, dict):
        raise CheckpointError(f"{path}: its notes are {notes!r}; expected names and values")
    return notes


def _build_model(
    path: Path, description: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> Any:
    """Build the model that a description names, if the tensors can belong to it."""
    name = description.get("class")
    if name == "Checkpoint":
        raise CheckpointError(
            f"{path} is the Checkpoint of a training, with more than a model; expected a file of "
            "npformer.save. Open its folder with npformer.load_checkpoint, which returns the model"
        )
    if not isinstance(name, str) or name not in MODELS:
        raise ValueError(f"it holds a {name}; expected one of {', '.join(sorted(MODELS))}")
    check_keys(path, description, KEYS)
    for key, form in (("config", dict), ("arguments", dict), ("frozen", list)):
        if not isinstance(value := description.get(key), form):
            raise ValueError(f"its {key!r} is {value!r}; expected a {form.__name__}")
    kind, arguments = MODELS[name], description["arguments"]
    check_stated(description["config"], arguments, tensors)
    config = EncoderConfig.from_dict(description["config"])
    _refuse_misfits(path, misfit(kind, config, tensors))
    model = kind(config, **arguments, seed=undrawn_for(tensors))
    frozen = description["frozen"]
    return model.freeze(*map(escape, frozen)) if frozen else model


def _refuse_misfits(path: Path, problems: str, *, given: bool = False) -> None:
    what, then = "its configuration", "Was it edited? Save the model again"
    if given:
        what, then = "the model that was given", "Expected one that was built like the saved one"
    if problems:
        raise CheckpointError(f"{path}: its tensors do not fit {what}: {problems}. {then}")


def _tell_non_finite(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Warn of weights that are NaN or infinite."""
    counts = {name: array.size - np.isfinite(array).sum() for name, array in tensors.items()}
    if non_finite := [f"{name} ({n} of {tensors[name].size})" for name, n in counts.items() if n]:
        more = f" and {len(non_finite) - 3} more" if len(non_finite) > 3 else ""
        warnings.warn(
            f"{path}: NaN or infinity is in {', '.join(non_finite[:3])}{more}, so predictions will "
            "be NaN or wrong. Was it saved after a training that diverged? Load an earlier file",
            CheckpointWarning,
            stacklevel=5,
        )
