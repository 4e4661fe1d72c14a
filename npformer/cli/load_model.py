"""Reading the models that `npformer train` wrote, for evaluate and predict."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from npformer.cli.common import option
from npformer.cli.recipes.kinds import is_data_file
from npformer.cli.recipes.recipes import RECIPES, Recipe
from npformer.core import a_type, checks
from npformer.tasks.estimators import Estimator
from npformer.training.storage.model_file import CheckpointError
from npformer.training.storage.models import checkpoint_name, load, read_notes
from npformer.training.trainable import SequenceClassifier


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add --force."""
    option(parser, "--force", "load MODEL even if its checksum is wrong", action="store_true")


def load_trained(
    path: Path, backend: str, instead: str, *, force: bool = False
) -> tuple[SequenceClassifier, Recipe, dict[str, Any]]:
    """Return a model, its task, and the notes in its file, which have the split and the seed.

    For a model that `npformer train` did not write, the error ends with `instead`.
    """
    model = load_any(path, backend, force=force)
    if isinstance(model, Estimator):
        raise ValueError(
            f"{path} holds {a_type(model)}, for files; expected a model of one of "
            f"npformer's tasks: {', '.join(RECIPES)}"
        )
    return model, *task_of(path, instead, force=force)


def task_of(path: Path, instead: str, *, force: bool = False) -> tuple[Recipe, dict[str, Any]]:
    """Return the task that a model was trained on, and the notes in its file."""
    path = _file(path)
    notes = read_notes(path, force=force)
    task, split, seed = (notes.get(name) for name in ("task", "split", "seed"))
    stated = isinstance(task, str) and isinstance(split, str) and type(seed) is int
    if not stated or task not in RECIPES:
        raise ValueError(
            f"{path} does not say which task, split and seed it was trained on; expected a model "
            f"that `npformer train` wrote, which has test data. {instead}"
        )
    return RECIPES[str(task)], notes


def path_of_split(place: Path, split: str | None) -> Path:
    """Return the model of a split in a run's folder, if there is one."""
    if place.is_dir() and split is not None and (place / checkpoint_name(split)).is_file():
        return place / checkpoint_name(split)
    return place


def test_data(
    model: SequenceClassifier, recipe: Recipe, notes: dict[str, Any], split: str | None
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the test data of a split, or of that in the notes, and its name."""
    split = notes["split"] if split is None else split
    checks.choice(f"--split of task {recipe.name}", split, recipe.splits)
    return *in_dtype_of(model, recipe.load(split, int(notes["seed"])).test), split


def load_any(path: Path, backend: str, *, force: bool = False) -> SequenceClassifier | Estimator:
    """Return what is in a file or folder: a model of arrays, or one of a file."""
    path = _file(path)
    try:
        model = load(path, backend=backend, force=force)
    except CheckpointError as error:
        if is_data_file(path):  # by its name, which a model may have, too
            raise ValueError(
                f"{path} is a file of data; expected a model first: a folder that `npformer train` "
                "wrote, or a .safetensors file that npformer.save wrote"
            ) from error
        plugins = read_notes(path, force=force).get("plugins") if error.unregistered else None
        if not plugins or not isinstance(plugins, list):
            raise
        again = " ".join(f"--plugin {plugin}" for plugin in plugins)
        raise ValueError(
            f"{path} needs {' and '.join(error.unregistered)}, which plugins registered for its "
            f"training. No file decides what code runs, so name them again: {again}"
        ) from error
    if not isinstance(model, SequenceClassifier | Estimator):
        raise ValueError(
            f"{path} holds a model of the class {type(model).__name__}; expected one that "
            "`npformer train` wrote, or a SequenceClassifier"
        )
    return model


def _file(path: Path) -> Path:
    if not path.exists() and path.suffix != ".safetensors":
        raise ValueError(
            f"there is no folder {path}; expected one that `npformer train` wrote, or a file "
            "that npformer.save wrote"
        )
    if not path.is_dir():
        return path
    model = path / checkpoint_name()
    if not model.exists() and (earlier := sorted(path.glob(f"replaced-*/{checkpoint_name()}"))):
        raise ValueError(
            f"the training in {path} has saved no model yet: `npformer train TASK --out {path} "
            f"--resume` goes on with it. The model of an earlier run is {earlier[-1]}"
        )
    if not model.exists() and (runs := sorted(path.glob(f"*/{checkpoint_name()}"))):
        raise ValueError(
            f"{path} is not a run, but runs are in it, such as {runs[0].parent}; name one"
        )
    return model


def notes_of(path: Path, *, force: bool = False) -> dict[str, Any]:
    """Return the notes of a model in a file or folder."""
    return read_notes(_file(path), force=force)


def in_dtype_of(
    model: SequenceClassifier, part: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return (x, y) with feature vectors in the model's dtype."""
    x, y = part
    return (x.astype(model.dtype) if x.dtype.kind == "f" else x), y
