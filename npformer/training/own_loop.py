"""save_checkpoint and load_checkpoint: checkpoints for training loops of your own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Layer, checks, describe, is_numpy_generator
from npformer.optim import SCHEDULES, SGD, Adam, Optimizer, Schedule, schedule_of
from npformer.optim.own_parameters import check_trains
from npformer.training.history import History
from npformer.training.storage import checkpoint_folder as folders
from npformer.training.storage.files import check_writable
from npformer.training.storage.generator_state import generator_state, new_generator
from npformer.training.storage.model_file import CheckpointError
from npformer.training.storage.models import (
    MODELS,
    fill,
    model_description,
    model_of,
    rebuildable,
    tensors_of,
)

OPTIMIZERS: dict[str, Any] = {"Adam": Adam, "SGD": SGD}
"""Those that `load_checkpoint` makes. A user's becomes an Adam, if it has the same settings."""


@dataclass
class Checkpoint:
    """A training that can be continued.

    Attributes
    ----------
    model : Layer
    optimizer : Optimizer
        Of the model's parameters, with its moments and the number of its steps.
    generators : dict of str to numpy.random.Generator
        As they were saved. `fit` saves "shuffle", for the order of samples, and "dropout", unless
        masks were drawn on the device.
    history : History or None
    notes : dict
    """

    model: Layer
    optimizer: Optimizer
    generators: dict[str, np.random.Generator] = field(default_factory=dict)
    history: History | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    folder: str | os.PathLike[str],
    model: Layer,
    optimizer: Optimizer,
    *,
    generators: Mapping[str, np.random.Generator] | None = None,
    history: History | None = None,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write all that a training loop needs to continue into ``folder/checkpoint.safetensors``.

    It replaces an earlier checkpoint whole: a crash leaves either the old one or the new one. Any
    other file of this name is refused.
    `fit` does this by itself, with ``checkpoint=folder``.

    Parameters
    ----------
    folder : str or path
        Created if it does not exist.
    model, optimizer
        The model, and the optimizer of its parameters.
    generators : mapping of str to numpy.random.Generator, optional
        Those that the loop draws from, with their state and the number of children spawned.
    history : History, optional
    notes : mapping, optional
        Further values, ready for JSON: the place in the data, for example.
    """
    path = folders.checked_folder("folder", folder)
    checks.instance("model", model, Layer)
    checks.instance("optimizer", optimizer, Optimizer, "Write Adam(model.parameters())")
    check_trains(optimizer.parameters, model.parameters())
    if generators is None:
        generators = {}
    check_generators(generators)
    if history is not None:
        checks.instance("history", history, History, "fit returns one")
    if notes is not None:
        checks.plain_values("notes", notes)
    if type(model) in MODELS.values():
        rebuildable(model)  # or nobody could load it
    sections = sections_of(model, optimizer, generators, history)
    folders.check_replaceable(path)
    check_writable(path)
    folders.write(path, {**sections, "notes": dict(notes or {})})


def check_generators(generators: Any) -> None:
    """Raise TypeError for anything but generators by name."""
    is_mapping = isinstance(generators, Mapping)
    if not is_mapping or not all(map(is_numpy_generator, generators.values())):
        raise TypeError(
            f"generators is {describe(generators)}; expected a dict of numpy.random.Generator"
        )


def sections_of(
    model: Layer, optimizer: Optimizer, generators: Mapping[str, Any], history: History | None
) -> dict[str, Any]:
    """Return the sections of a checkpoint, in their order; those that only `fit` fills are None."""
    values, moments = optimizer.state()
    return {
        "model": {**model_description(model), "tensors": tensors_of(model)},
        "optimizer": {"class": type(optimizer).__name__, "values": values, "moments": moments},
        "generators": {name: generator_state(g) for name, g in generators.items()},
        "history": None if history is None else history.to_dict(),
        "progress": None,
        "settings": None,
        "notes": {},
    }


def load_checkpoint(
    folder: str | os.PathLike[str],
    *,
    model: Layer | None = None,
    schedule: Schedule | str | None = None,
) -> Checkpoint:
    """Return what `save_checkpoint`, or `fit`, wrote into a folder.

    The model has the latest weights, on the CPU. A model of your own class is not built from the
    file: pass one, which gets the weights. Pass a schedule that is your own function, too.

    Raises
    ------
    FileNotFoundError, CheckpointError
        There is no checkpoint in the folder, or it is damaged.
    """
    if schedule is not None:
        schedule = schedule_of(schedule)  # now, so that the file is not blamed for it
    path = folders.checked_folder("folder", folder)
    stored = folders.read(path)
    if stored is None:
        raise FileNotFoundError(
            f"there is no {folders.CHECKPOINT} in {path}; expected a folder that "
            "fit(checkpoint=...) or npformer.save_checkpoint wrote"
        )
    file = path / folders.CHECKPOINT
    with folders.explain_damage(path, Exception):
        tensors = stored["model"].pop("tensors")
        if model is None:
            model = model_of(file, stored["model"], tensors)
        else:
            fill(file, model, tensors, given=True)
        if schedule is None:
            schedule = _schedule(file, stored["optimizer"]["values"]["schedule"])
        optimizer = _optimizer(model, stored["optimizer"], schedule)
        generators = {
            name: new_generator(state)
            for name, state in stored["generators"].items()
            if "device" not in state
        }
        history = None if stored["history"] is None else History.from_dict(stored["history"])
        return Checkpoint(model, optimizer, generators, history, stored["notes"])


def _optimizer(model: Layer, section: Mapping[str, Any], schedule: Schedule) -> Optimizer:
    """Return the optimizer that is described in a section of a file."""
    values = section["values"]
    optimizer_class = OPTIMIZERS.get(section["class"], Adam)
    settings = {name: values[name] for name in optimizer_class.settings}
    optimizer: Optimizer = optimizer_class(model.parameters(), **settings, schedule=schedule)
    optimizer.restore(values, section["moments"])
    return optimizer


def _schedule(file: Path, spec: str) -> Schedule:
    """Return the schedule that is described in a file."""
    try:
        return SCHEDULES.make(spec)
    except ValueError as error:
        raise CheckpointError(
            f"{file}: the schedule of the learning rate was {spec}; expected one of "
            f"{', '.join(SCHEDULES)}. Pass it again: load_checkpoint(folder, schedule=...)"
        ) from error
