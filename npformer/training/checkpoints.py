"""Checkpoints: what is written, and how a training resumes from it, bit for bit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npformer import engine
from npformer.core import asarray, checks, describe, precision
from npformer.data.samples import Samples
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import name_of
from npformer.optim import Optimizer
from npformer.optim.schedules import factors_of
from npformer.training.batches import Batches
from npformer.training.callbacks import Callback, Now, TrainingState
from npformer.training.history import History
from npformer.training.own_loop import sections_of
from npformer.training.settings import Settings
from npformer.training.single_process import Processes
from npformer.training.storage import checkpoint_folder as folders
from npformer.training.storage.agreement import check_agreement
from npformer.training.storage.generator_state import new_generator, restore_generator
from npformer.training.storage.model_file import CheckpointError
from npformer.training.storage.models import model_description


@dataclass
class Checkpoints(Callback):
    """Writes the state of a training into a locked folder every so many epochs.

    The first process writes, and reads for all.
    """

    folder: Path
    every: int  # epochs between checkpoints
    batches: Batches
    processes: Processes
    dropout: Any  # the generator of dropout's masks
    watchers: Mapping[str, Any]  # those of `fit` that have a state to keep
    callbacks: list[Callback]  # the user's
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
        stored = self.processes.first(folders.read(self.folder) if state.rank == 0 else None)
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
        if self.processes.first(state.rank == 0 and self._write(stored, state)):
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
        before = self._steps_before
        other = sorted(workers for workers in state.history.workers if workers not in before)
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
        self.watchers["recorder"].read(state)
        self.watchers["recorder"].check_weights(state)  # a resumed training could only fail again
        callback_states = [
            {"class": type(callback).__qualname__, "state": callback.state_dict()}
            for callback in self.callbacks
        ]
        return {
            **sections_of(state.model, state.optimizer, self.generators(), state.history),
            "progress": {
                "epoch": state.epoch,
                "step": state.step,
                "step_in_epoch": state.step_in_epoch,
                "best_epoch": state.best_epoch,
                "batches": {"order": self.batches.order},
                "watchers": {name: watcher.state_dict() for name, watcher in self.watchers.items()},
                "callbacks": callback_states,
            },
            "settings": self.settings,
        }

    def _restore(self, state: TrainingState, stored: dict[str, Any]) -> None:
        """Give a training the state that was stored, after checking that it is the same."""
        progress = stored["progress"]
        self._check_progress(state, progress)
        check_agreement(stored["settings"], self.settings)
        tensors = stored["model"]["tensors"]
        best_weights = progress["watchers"].get("best", {}).get("weights")
        self._check_weights_fit(state.model, tensors, best_weights)
        history = History.from_dict(stored["history"])
        generator_states = stored["generators"]
        self._check_generators(generator_states)
        callback_states = list(states_of(self.callbacks, progress["callbacks"]))
        # Nothing has been changed yet; from here on nothing is expected to fail.
        values = stored["optimizer"]["values"]
        state.optimizer.restore(values, stored["optimizer"]["moments"])
        state.optimizer.lr = float(values["lr"])  # callbacks may have changed it
        for name, parameter in state.model.named_parameters().items():
            parameter.value[...] = asarray(tensors[name], state.model.backend)
        for name, generator in self.generators().items():
            restore_generator(generator, generator_states[name])
        self.batches.order = progress["batches"]["order"]
        now = Now(progress["epoch"], progress["step_in_epoch"], progress["step"])
        state._set(history=history, best_epoch=progress["best_epoch"], _now=now)
        for name, watcher in self.watchers.items():
            watcher.load_state_dict(progress["watchers"][name])
        for callback, callback_state in callback_states:
            callback.load_state_dict(callback_state)

    def _check_progress(self, state: TrainingState, progress: Any) -> None:
        """Raise an error if `fit` did not write the checkpoint, or for more epochs than these."""
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

    def _check_weights_fit(self, model: Model, tensors: Any, best_weights: Any) -> None:
        """Raise ValueError if weights, or the best weights so far, are not those of the model."""
        parameters = model.named_parameters()
        trained = {name: parameters[name] for name in model.parameters()}
        problems = checks.misfits(tensors, parameters)
        if best_weights and not problems:
            problems = checks.misfits(best_weights, trained)
        if problems:
            raise ValueError(
                f"the checkpoint's weights do not fit the model: {problems}. Expected the model "
                "with which the training began"
            )

    def _check_generators(self, states: Mapping[str, Any]) -> None:
        """Raise CheckpointError for what is not the state of a generator."""
        with folders.explain_damage(self.folder, ValueError, OverflowError):
            for name in self.generators():
                if "device" not in states[name]:
                    new_generator(states[name])


def checkpoints_for(
    settings: Settings,
    state: TrainingState,
    batches: Batches,
    dropout: Any,
    *,
    watchers: Mapping[str, Any],
    callbacks: list[Callback],
    processes: Processes,
    resources: ExitStack,
) -> Checkpoints:
    """Return what writes a training's checkpoints; the folder is locked until `resources` close."""
    assert settings.checkpoint is not None
    folder = Path(settings.checkpoint)
    if processes.rank == 0:  # which writes for all
        resources.enter_context(folders.reserve(folder, n_bytes(state.model, batches.task.samples)))
    return Checkpoints(
        folder,
        settings.every,
        batches,
        processes,
        dropout,
        watchers=watchers,
        callbacks=callbacks,
        settings=settings_of(state.model, state.optimizer, batches, settings),
    )


def n_bytes(model: Model, samples: Samples) -> int:
    """Return about how large a checkpoint is: weights, two moments, best weights, order."""
    parameters = model.named_parameters().values()
    n_bytes_of_weights = sum(p.size * np.dtype(p.dtype).itemsize for p in parameters)
    return 4 * int(n_bytes_of_weights) + 8 * len(samples) + (1 << 16)


def settings_of(
    model: Model, optimizer: Optimizer, batches: Batches, settings: Settings
) -> dict[str, Any]:
    """Return the settings that `must` be the same on resuming, and those that `may` differ."""
    task = batches.task
    description = model_description(model)
    of_loss = {name: value for name, value in vars(task.loss).items() if _is_plain(value)}
    seed = settings.seed
    must = {
        "model": description["class"],
        "config": description["config"],
        "arguments": description["arguments"],
        "data": task.samples.summary,
        "validation": None if task.held_out is None else task.held_out.summary,
        "batch_size": batches.batch_size,
        "batches": batches.way,
        "clip_norm": settings.clip_norm,
        "frozen": list(model.frozen()),
        "metric": name_of(task.metric),
        "loss": {"class": type(task.loss).__name__, **of_loss},
        "seed": int(seed) if isinstance(seed, int | np.integer) else describe(seed),
        **{name: getattr(optimizer, name) for name in optimizer.settings},
    }
    return {
        "must": json.loads(json.dumps(must, default=float)),  # as they will be read back
        "may": {
            "backend": model.backend,
            "micro_batch": settings.samples_at_once,
            "precision": precision(model.backend),
            "use_kernels": engine.enabled(),
            "numpy": np.__version__,
        },
        "schedule": factors_of(optimizer.schedule, settings.epochs * len(batches)),
        "epochs": settings.epochs,
    }


def states_of(
    callbacks: list[Callback], stored: list[dict[str, Any]]
) -> Iterator[tuple[Callback, Any]]:
    """Yield each callback that had a state to keep, with that state."""
    without_state = list(callbacks)
    for entry in stored:
        if entry["state"] is None:
            continue
        callback = next((c for c in without_state if type(c).__qualname__ == entry["class"]), None)
        if callback is None:
            raise ValueError(
                f"callbacks lacks a {entry['class']}, whose state the checkpoint holds; expected "
                "the callbacks with which the training began"
            )
        without_state.remove(callback)
        yield callback, entry["state"]


def _is_plain(value: object) -> bool:
    """Return whether a setting of a loss can be compared with one in a file."""
    if isinstance(value, tuple):
        return all(isinstance(item, int | float) for item in value)
    return isinstance(value, int | float | str)
