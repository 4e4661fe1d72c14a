"""Weights in safetensors, the configuration in its metadata; no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

from npformer.backend import asarray, to_numpy
from npformer.classifier import SequenceClassifier
from npformer.encoder import Encoder, EncoderConfig
from npformer.text_encoder import TextEncoder

FORMAT = 1

Model = Encoder | TextEncoder | SequenceClassifier
MODELS: dict[str, type[Model]] = {
    "Encoder": Encoder,
    "TextEncoder": TextEncoder,
    "SequenceClassifier": SequenceClassifier,
}
"""What can be built again from its configuration, and so saved and loaded."""


class CheckpointError(ValueError):
    """A file that does not hold a model npformer can load."""


def save(
    model: Model,
    path: str | os.PathLike[str],
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a safetensors file.

    The file holds every parameter under its dotted name, as host arrays whatever the backend, and
    the configuration in its metadata. It is written beside its place and then moved there, so that
    an interruption leaves the old file whole.

    Parameters
    ----------
    model : Encoder, TextEncoder or SequenceClassifier
    path : str or path
        Usually ending in ``.safetensors``.
    notes : mapping, optional
        More to remember, in plain values: `read_notes` gives it back.

    Raises
    ------
    TypeError
        Not a model that can be built again from its configuration.
    FileNotFoundError
        The folder does not exist.
    """
    from safetensors.numpy import save as to_bytes

    if type(model) not in MODELS.values():  # `load` could not build a subclass
        raise TypeError(
            f"model is a {type(model).__name__}; expected an Encoder, a TextEncoder or a "
            "SequenceClassifier, which can be built again from their configuration. For other "
            "layers save layer.parameters() with safetensors.numpy.save_file"
        )
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
    header = {
        "format": FORMAT,
        "class": type(model).__name__,
        "config": model.config.to_dict(),
        "arguments": {"dtype": model.dtype} if isinstance(model, Encoder) else model.arguments(),
        "notes": dict(notes or {}),
    }
    tensors = {
        name: to_numpy(parameter.value).copy()
        for name, parameter in model.named_parameters().items()
    }
    data = to_bytes(tensors, metadata={"npformer": json.dumps(header)})
    # A name of its own: another process may be saving to the same place.
    beside = path.with_name(f"{path.name}.{token_hex(4)}.part")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], backend: str = "numpy") -> Model:
    """Read a model from a file that `save` wrote, on any backend.

    Parameters
    ----------
    path : str or path
    backend : str
        Where the model shall live.

    Returns
    -------
    model : Encoder, TextEncoder or SequenceClassifier

    Raises
    ------
    FileNotFoundError
        There is no such file.
    CheckpointError
        The file is damaged, cut short, or not npformer's; the message says which.
    """
    header, tensors = _read(Path(path))
    try:
        config = EncoderConfig.from_dict(header["config"])
        kind, arguments = header["class"], header["arguments"]
        if kind not in MODELS:
            raise ValueError(f"it holds a {kind}; expected one of {', '.join(MODELS)}")
        model = MODELS[kind](config, **arguments)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else error
        raise CheckpointError(
            f"{path}: its description cannot be used: {problem}. If the file was edited, save the "
            "model again"
        ) from error
    named = model.named_parameters()
    problems = [f"{name} is missing" for name in named if name not in tensors]
    problems += [f"{name} is not part of the model" for name in tensors if name not in named]
    problems += [
        f"{name} has shape {tensors[name].shape} and dtype {tensors[name].dtype}, expected "
        f"{parameter.shape} and {parameter.dtype}"
        for name, parameter in named.items()
        if name in tensors
        and (tensors[name].shape != parameter.shape or tensors[name].dtype != parameter.dtype)
    ]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise CheckpointError(
            f"{path}: its tensors do not fit its configuration: {'; '.join(problems[:3])}{more}. "
            "Was it edited? Save the model again"
        )
    for name, parameter in named.items():
        parameter.value[...] = asarray(tensors[name])
    return model.to(backend)


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the notes that were saved with a model.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    FileNotFoundError, CheckpointError
        As in `load`.
    """
    header, _ = _read(Path(path))
    return dict(header.get("notes", {}))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
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
        header = json.loads(metadata["npformer"])
        version = header["format"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path}: its npformer configuration is damaged ({error}). Copy or save it again"
        ) from error
    if version != FORMAT:
        raise CheckpointError(
            f"{path} has format {version}; this npformer reads format {FORMAT}. Update npformer"
        )
    return header, tensors
