"""save and load: a model in a safetensors file, with its configuration as JSON; no pickle."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import asarray, checks, initializers, to_numpy
from npformer.models import Encoder, EncoderConfig
from npformer.text_encoder import TextEncoder
from npformer.training.architecture import check_rebuilt
from npformer.training.plugin_names import how_to_register, missing_names, plugin_names

FORMAT = 1

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


class CheckpointError(ValueError):
    """A file from which npformer cannot load a model.

    Attributes
    ----------
    unregistered : tuple of str
        What the file needs and no plugin has registered, such as "the mixer 'mean'".
    """

    unregistered: tuple[str, ...] = ()


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
    if type(model) not in MODELS.values():  # `load` could not build a subclass
        raise TypeError(
            f"model is a {type(model).__name__}; expected an Encoder, a TextEncoder or a "
            "SequenceClassifier, which can be rebuilt from their configuration. For other layers "
            "save layer.parameters() with safetensors.numpy.save_file"
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
    arguments = {"dtype": model.dtype} if isinstance(model, Encoder) else model.arguments()
    check_rebuilt(model, _built(type(model), model.config, arguments))
    description: dict[str, Any] = {
        "class": type(model).__name__,
        "config": model.config.to_dict(),
        "arguments": arguments,
        "notes": dict(notes or {}),
    }
    if from_plugins := plugin_names({**vars(model.config), **arguments}):
        description["registered"] = from_plugins
    tensors = {name: to_numpy(p.value).copy() for name, p in model.named_parameters().items()}
    write_model_file(path, description, tensors)


def load(path: str | os.PathLike[str], backend: str = "numpy") -> Model:
    """Read a model that `save` wrote, and move it to a backend.

    Raises
    ------
    CheckpointError
        The file is damaged, cut short, or not npformer's; the message says which.
    """
    description, tensors = read_model_file(Path(path))
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
    return model.to(backend)


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the notes that were saved with a model; raises errors as `load` does."""
    description, _ = read_model_file(Path(path))
    return dict(description.get("notes", {}))


def _built(kind: type[Model], config: EncoderConfig, arguments: Mapping[str, Any]) -> Model:
    """Build a model without drawing its weights."""
    return kind(config, **arguments, seed=initializers.undrawn())


def write_model_file(
    path: Path, description: Mapping[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    """Write a complete file or none: write it under another name first, and then rename it."""
    from safetensors.numpy import save as to_bytes

    header = json.dumps({"format": FORMAT, **description})
    data = to_bytes(tensors, metadata={"npformer": header})
    # The name is random because another process may be saving to the same place.
    unfinished = path.with_name(f"{path.name}.{token_hex(4)}.part")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_model_file(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a file's description and tensors."""
    from safetensors import SafetensorError, safe_open

    if path.is_dir():
        raise CheckpointError(
            f"{path} is a folder; expected a file, such as model.safetensors in it"
        )
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; expected one that npformer.save wrote")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if "npformer" not in metadata:
                raise CheckpointError(
                    f"{path} is a safetensors file of another program: it has no npformer "
                    "configuration. Load its tensors with safetensors.numpy.load_file and copy "
                    "them into model.parameters()"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} ({path.stat().st_size:,} bytes) is not a whole safetensors file: it is "
            f"damaged, cut short or of another kind ({error}). Copy or save it again"
        ) from error
    try:
        description = json.loads(metadata["npformer"])
        version = description["format"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path}: its npformer configuration is damaged ({error}). Copy or save it again"
        ) from error
    if version != FORMAT:
        raise CheckpointError(
            f"{path} has format {version}; this npformer reads format {FORMAT}. Update npformer"
        )
    return description, tensors
