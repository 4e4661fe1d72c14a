"""A safetensors file with a description in its header: how models and checkpoints are stored."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core.files import write_whole

FORMAT = 1


class CheckpointError(ValueError):
    """A file from which npformer cannot load a model.

    Attributes
    ----------
    unregistered : tuple of str
        What the file needs and no plugin has registered, such as "the mixer 'mean'".
    """

    unregistered: tuple[str, ...] = ()


def write_model_file(
    path: Path, description: Mapping[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    """Write a complete file or none: write it under another name first, and then rename it."""
    from safetensors.numpy import save as to_bytes

    header = json.dumps({"format": FORMAT, **description})
    data = to_bytes(tensors, metadata={"npformer": header})
    write_whole(path, data)


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
