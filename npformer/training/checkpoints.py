"""Checkpoints: what is written, and how a training resumes from it, bit for bit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npformer import engine
from npformer.core import asarray, checks, described, precision
from npformer.data.samples import Samples
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import name_of
from npformer.optim import Optimizer
from npformer.optim.schedules import factors_of
from npformer.training.batches import Batches
from npformer.training.callbacks import Callback, Now, TrainingState
from npformer.training.distributed import Communicator
from npformer.training.history import History
from npformer.training.own_loop import sections_of
from npformer.training.storage import checkpoint_folder as folders
from npformer.training.storage.agreement import check_agreement
from npformer.training.storage.generator_state import new_generator, restore_generator
from npformer.training.storage.model_file import CheckpointError
from npformer.training.storage.models import model_description


@dataclass
class Checkpoints(Callback):
    """Writes the state of a training into a locked folder every so many epochs.

    The first rank writes, and reads for all ranks.
    """

    folder: Path
    every: int  # epochs between checkpoints
    batches: Batches
    ranks: Communicator
    dropout: Any  # the generator of dropout's masks
    own: Mapping[str, Any]  # the callbacks of `fit` that have a state to keep
    of_user: list[Callback]
    settings: dict[str, Any]  # what the training was given: `settings_of`
    _steps_before: dict[str, int] = field(default_factory=dict)  # `History.workers` on resuming
    _written: tuple[int, int, bool] | None = None  # `_position` of the latest checkpoint

    def generators(self) -> dict[str, Any]:
        """Return the generators by name."""
        return {"shuffle": self.batches.shuffle, "dropout": self.dropout}

    def begin(self, state: TrainingState, resume: bool) -> None:
        """Resume from the checkpoint in the folder, if there is one.

        Raises ValueError if there is one and `resume` is False, or it is of another training.
        """
        stored = self.ranks.first(folders.read(self.folder) if state.rank == 0 else None)
        if stored is None:
            return
        if not resume:
            raise ValueError(
                f"{self.folder} holds the checkpoint of an earlier training; expected an empty "
                "folder. Pass resume=True to continue that training, or name another folder"
            )
        with folders.explain_damage(self.folder, KeyError, TypeError, AttributeError):
            self._restore(state, stored)
        self._written = self._position(state)
        self._steps_before = dict(state.history.workers)

    def after_epoch(self, state: TrainingState) -> None:
        """Write a checkpoint, if one is due."""
        if state.epoch % self.every == 0:
            self.after_training(state)

    def after_training(self, state: TrainingState) -> None:
        """Write a checkpoint. If that fails, warn: the training continues all the same."""
        if self._position(state) == self._written:
            return
        stored = self._whole_state(state)
        if self.ranks.first(state.rank == 0 and self._write(stored, state)):
            self._written = self._position(state)

    def _write(self, stored: dict[str, Any], state: TrainingState) -> bool:
        """Write a checkpoint, on the first rank, and return whether that succeeded."""
        self._tell_other_workers(state)
        try:
            folders.write(self.folder, stored)
            return True
        except OSError as error:
            last = "none" if self._written is None else f"that of epoch {self._written[0]}"
            warnings.warn(
                f"the checkpoint {error.filename} could not be written ({error.strerror}); the "
                f"latest is {last}. The training continues, and will write the next one as usual",
                stacklevel=3,
            )
            return False

    def _tell_other_workers(self, state: TrainingState) -> None:
        """Warn, once, if steps are shared by another number of workers than before."""
        before, steps = self._steps_before, state.history.workers
        known = set(before)
        other = sorted(name for name in steps if name not in known)
        if before and other:
            self._steps_before = {}
            warnings.warn(
                f"steps are computed by {' and '.join(other)}, before by {' and '.join(before)}: "
                "the training equals an uninterrupted one up to rounding, not bit for bit",
                stacklevel=2,
            )

    def _position(self, state: TrainingState) -> tuple[int, int, bool]:
        """Return the epoch, the step in it, and whether the epoch is over."""
        return state.epoch, state.step_in_epoch, self.batches.order is None

    def _whole_state(self, state: TrainingState) -> dict[str, Any]:
        """Return the whole state of a training between two steps."""
        self.own["recorder"].read(state)
        self.own["recorder"].check_weights(state)  # a resumed training could only fail again
        of_user = [{"class": type(c).__qualname__, "state": c.state_dict()} for c in self.of_user]
        return {
            **sections_of(state.model, state.optimizer, self.generators(), state.history),
            "progress": {
                "epoch": state.epoch,
                "step": state.step,
                "step_in_epoch": state.step_in_epoch,
                "best_epoch": state.best_epoch,
                "batches": {"order": self.batches.order},
                "watchers": {name: each.state_dict() for name, each in self.own.items()},
                "callbacks": of_user,
            },
            "settings": self.settings,
        }

    def _restore(self, state: TrainingState, stored: dict[str, Any]) -> None:
        """Give a training the state that was stored, after checking that it is the same."""
        progress = stored["progress"]
        if progress is None:
            raise CheckpointError(
                "the checkpoint was written by save_checkpoint and not by fit; expected one of "
                "fit. Continue with the loop that wrote it: npformer.load_checkpoint"
            )
        if state.epochs < progress["epoch"]:
            raise ValueError(
                f"epochs is {state.epochs} and the checkpoint is in epoch {progress['epoch']}; "
                "expected at least as many"
            )
        check_agreement(stored["settings"], self.settings)
        parameters = state.model.named_parameters()
        tensors, best = (
            stored["model"]["tensors"],
            progress["watchers"].get("best", {}).get("weights"),
        )
        trained = {name: parameters[name] for name in state.model.parameters()}
        problems = checks.misfits(tensors, parameters) or (best and checks.misfits(best, trained))
        if problems:
            raise ValueError(
                f"the checkpoint's weights do not fit the model: {problems}. Expected the model "
                "with which the training began"
            )
        history = History.from_dict(stored["history"])
        generators = [(g, stored["generators"][name]) for name, g in self.generators().items()]
        with folders.explain_damage(self.folder, ValueError, OverflowError):
            for _, its_state in generators:
                if "device" not in its_state:
                    new_generator(its_state)  # raises an error for what is not a state
        callbacks = _match(self.of_user, progress["callbacks"])
        # Nothing has been changed yet; from here on nothing is expected to fail.
        optimizer = stored["optimizer"]
        state.optimizer.restore(optimizer["values"], optimizer["moments"])
        state.optimizer.lr = float(optimizer["values"]["lr"])  # callbacks may have changed it
        for name, parameter in parameters.items():
            parameter.value[...] = asarray(tensors[name], state.model.backend)
        for generator, its_state in generators:
            restore_generator(generator, its_state)
        self.batches.order = progress["batches"]["order"]
        now = Now(progress["epoch"], progress["step_in_epoch"], progress["step"])
        state._set(history=history, best_epoch=progress["best_epoch"], _now=now)
        for name, each in self.own.items():
            each.load_state_dict(progress["watchers"][name])
        for callback, its_state in callbacks:
            callback.load_state_dict(its_state)


def n_bytes(model: Model, samples: Samples) -> int:
    """Return about how large a checkpoint is: weights, two moments, best weights, order."""
    sizes = (p.size * np.dtype(p.dtype).itemsize for p in model.named_parameters().values())
    return 4 * int(sum(sizes)) + 8 * len(samples) + (1 << 16)


def settings_of(
    model: Model,
    optimizer: Optimizer,
    batches: Batches,
    epochs: int,
    clip_norm: float | None,
    seed: object,
    micro_batch: int | None,
) -> dict[str, Any]:
    """Return the settings that `must` be the same on resuming, and those that `may` differ."""
    task = batches.task
    description = model_description(model)
    of_loss = {name: value for name, value in vars(task.loss).items() if _is_plain(value)}
    must = {
        "model": description["class"],
        "config": description["config"],
        "arguments": description["arguments"],
        "data": task.samples.in_short,
        "validation": None if task.held_out is None else task.held_out.in_short,
        "batch_size": batches.batch_size,
        "batches": batches.way,
        "clip_norm": clip_norm,
        "frozen": list(model.frozen()),
        "metric": name_of(task.metric),
        "loss": {"class": type(task.loss).__name__, **of_loss},
        "seed": int(seed) if isinstance(seed, int | np.integer) else described(seed),
        **{name: getattr(optimizer, name) for name in optimizer.settings},
    }
    return {
        "must": json.loads(json.dumps(must, default=float)),  # as they will be read back
        "may": {
            "backend": model.backend,
            "micro_batch": micro_batch,
            "precision": precision(model.backend),
            "use_kernels": engine.enabled(),
            "numpy": np.__version__,
        },
        "schedule": factors_of(optimizer.schedule, epochs * len(batches)),
        "epochs": epochs,
    }


def _match(callbacks: list[Callback], stored: list[dict[str, Any]]) -> list[tuple[Callback, Any]]:
    """Return each callback that had a state to keep, with that state."""
    found, left = [], list(callbacks)
    with_state = [(each["class"], each["state"]) for each in stored if each["state"] is not None]
    for name, kept in with_state:
        match = next((c for c in left if type(c).__qualname__ == name), None)
        if match is None:
            raise ValueError(
                f"callbacks lacks a {name}, whose state the checkpoint holds; expected the "
                "callbacks with which the training began"
            )
        left.remove(match)
        found.append((match, kept))
    return found


def _is_plain(value: object) -> bool:
    """Return whether a setting of a loss can be compared with one in a file."""
    if isinstance(value, tuple):
        return all(isinstance(item, int | float) for item in value)
    return isinstance(value, int | float | str)
