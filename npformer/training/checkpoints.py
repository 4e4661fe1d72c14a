"""What a checkpoint of `fit` holds, and how a training goes on from it, bit for bit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import npformer.storage.checkpoint_folder as folders
from npformer import engine
from npformer.core import asarray, checks, described, precision
from npformer.data.stored_samples import Samples
from npformer.storage.checkpoint_folder import Stored
from npformer.storage.fingerprint import check_agreement, digest_of, factors_of
from npformer.storage.generator_state import check_state, generator_state, restore_generator
from npformer.storage.model_file import CheckpointError
from npformer.storage.models import model_description, tensors_of
from npformer.trainable import SequenceClassifier
from npformer.training.callbacks import Callback
from npformer.training.history import History
from npformer.training.training import Training


class Checkpoints:
    """Writes the state of a training into a folder, which is locked, every so many epochs."""

    def __init__(self, training: Training, folder: Path, every: int, seed: object) -> None:
        self.training = training
        self.folder = folder
        self.every = every
        self.settings = _settings(training, seed)
        self._steps_before: dict[str, int] = {}  # by whom, in earlier processes
        self._written: tuple[int, int, bool] | None = None  # `_position` of the latest checkpoint

    def begin(self, resume: bool) -> None:
        """Go on from the checkpoint in the folder, if there is one; it is an error not to want to.

        Raises ValueError if the training is not the one that was begun.
        """
        ranks = self.training.ranks
        stored = ranks.first(folders.read(self.folder) if ranks.rank == 0 else None)
        if stored is None:
            return
        if not resume:
            raise ValueError(
                f"{self.folder} holds the checkpoint of an earlier training; expected an empty "
                "folder. Pass resume=True to go on with that training, or name another folder"
            )
        try:
            _restore(self.training, stored, self.settings)
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{self.folder / folders.CHECKPOINT} does not hold the state of a training as fit "
                f"writes it ({type(error).__name__}: {error}): was it edited?"
            ) from error
        self._written = self._position()
        self._steps_before = dict(self.training.state.history.workers)

    def after_epoch(self) -> None:
        """Write a checkpoint, if it is time for one."""
        if self.training.state.epoch % self.every == 0:
            self.write()

    def write(self) -> None:
        """Write a checkpoint. If that fails, the training goes on all the same: say so."""
        if self._position() == self._written:
            return
        stored, ranks = _stored(self.training, self.settings), self.training.ranks
        written = ranks.first(self._written_by_the_first(stored) if ranks.rank == 0 else None)
        if written:
            self._written = self._position()

    def _written_by_the_first(self, stored: Stored) -> bool:
        """Write a checkpoint, as the first rank, and say whether that was possible."""
        self._tell_other_workers()
        try:
            folders.write(self.folder, stored)
        except OSError as error:
            last = "there is none yet" if self._written is None else f"of epoch {self._written[0]}"
            warnings.warn(
                f"the checkpoint {error.filename} could not be written ({error.strerror}); the "
                f"latest: {last}. The training goes on, and the next one is tried as usual",
                stacklevel=3,
            )
            return False
        return True

    def _tell_other_workers(self) -> None:
        """Warn, once, if steps are shared by another number of workers than before."""
        before, steps = self._steps_before, self.training.state.history.workers
        here = {name for name, n in steps.items() if n > before.get(name, 0)}
        known = {_number(name) for name in before}
        other = sorted(name for name in here if _number(name) not in known)
        if before and other:
            self._steps_before = {}
            warnings.warn(
                f"steps are computed by {' and '.join(other)}, and were by {' and '.join(before)}: "
                "the training equals one that was not stopped up to rounding, not bit for bit",
                stacklevel=2,
            )

    def _position(self) -> tuple[int, int, bool]:
        """Return epoch, step in it, and whether the epoch is over."""
        state = self.training.state
        return state.epoch, state.step_in_epoch, self.training.order is None


def n_bytes(model: SequenceClassifier, samples: Samples) -> int:
    """Return about how large a checkpoint is: weights, two moments, best weights, order."""
    sizes = (p.size * np.dtype(p.dtype).itemsize for p in model.named_parameters().values())
    return 4 * int(sum(sizes)) + 8 * len(samples) + (1 << 16)


def _number(workers: str) -> str:
    """Return what decides the order of sums: processes and threads add up the same parts."""
    return workers.replace("processes", "workers").replace("threads", "workers")


def _settings(training: Training, seed: object) -> dict[str, Any]:
    """Return what a training was given: what `must` be the same later, and what `may` differ."""
    state = training.state
    optimizer, model = state.optimizer, state.model
    return {
        "must": {
            "model": type(model).__name__,
            "config": _json(model.config.to_dict()),
            "arguments": _json(model.arguments()),
            "data": digest_of(training.samples),
            "validation": digest_of(training.held_out),
            "batch_size": training.batch_size,
            "by_length": training.lengths is not None,
            "clip_norm": training.clip_norm,
            "frozen": list(model.frozen()),
            "metric": state.history.metric,
            "loss": {"class": type(training.loss).__name__, **_plain_settings(training.loss)},
            "seed": int(seed) if isinstance(seed, int | np.integer) else described(seed),
            "lr": optimizer.lr,
            "betas": list(optimizer.betas),
            "eps": optimizer.eps,
            "weight_decay": optimizer.weight_decay,
            "no_decay": list(optimizer.no_decay),
        },
        "may": {
            "backend": model.backend,
            "micro_batch": training.micro_batch,
            "precision": precision(model.backend),
            "use_kernels": engine.enabled(),
            "numpy": np.__version__,
        },
        "schedule": factors_of(optimizer, state.epochs * state.n_steps),
        "epochs": state.epochs,
    }


def _stored(training: Training, settings: dict[str, Any]) -> Stored:
    """Return the whole state of a training between two steps."""
    state, model = training.state, training.state.model
    training.losses.read_all(state)
    training.losses.check_weights(state)  # or the training could only fail again
    early, weights = training.early_stopping.state_dict(), training.early_stopping.weights
    optimizer, moments = state.optimizer.state()
    generators = {"shuffle": generator_state(training.shuffle)}
    if training.dropout is not training.shuffle:
        generators["dropout"] = generator_state(training.dropout)
    arrays = folders.joined({"model": tensors_of(model), "optimizer": moments, "best": weights})
    if training.order is not None:
        arrays["order"] = training.order
    return Stored(
        {
            "model": model_description(model),
            "optimizer": optimizer,
            "generators": generators,
            "history": state.history.to_dict(),
            "progress": {
                "epoch": state.epoch,
                "step": state.step,
                "step_in_epoch": state.step_in_epoch,
                "losses": training.losses.of_epoch,
                "seconds": training.seconds(),
                "best_epoch": state.best_epoch,
                "early_stopping": early,
                "callbacks": [
                    {"class": type(each).__qualname__, "state": each.state_dict()}
                    for each in training.callbacks.of_user
                ],
            },
            "settings": settings,
            "notes": {},
        },
        arrays,
    )


def _restore(training: Training, stored: Stored, settings: dict[str, Any]) -> None:
    """Give a training the state that was stored, after checking that it is the same training."""
    values, arrays = stored
    before, progress = values["settings"], values["progress"]
    if progress is None:
        raise CheckpointError(
            "the checkpoint was written by npformer.save_checkpoint and not by fit; expected one "
            "of fit(checkpoint=...). Go on with the loop that wrote it: npformer.load_checkpoint"
        )
    state, model = training.state, training.state.model
    if state.epochs < progress["epoch"]:
        raise ValueError(
            f"epochs is {state.epochs} and the checkpoint is in epoch {progress['epoch']}; "
            "expected at least as many"
        )
    check_agreement(before, settings, epochs_differ=before["epochs"] != state.epochs)
    parameters = model.named_parameters()
    by_group = folders.parted(arrays, ("model", "optimizer", "best"))
    of_model, best = by_group["model"], by_group["best"]
    trained = {name: parameters[name] for name in model.parameters()}
    problems = checks.misfits(of_model, parameters) or (best and checks.misfits(best, trained))
    if problems:
        raise ValueError(
            f"the checkpoint's weights do not fit the model: {problems}. Expected the model with "
            "which the training began"
        )
    history = History.from_dict(values["history"])
    of_generators = [(training.shuffle, values["generators"]["shuffle"])]
    if training.dropout is not training.shuffle:
        of_generators.append((training.dropout, values["generators"]["dropout"]))
    for _, its_state in of_generators:
        check_state(its_state)
    callbacks = _matched(training.callbacks.of_user, progress["callbacks"])
    # Nothing has been changed yet; from here on nothing is expected to fail.
    state.optimizer.restore(values["optimizer"], by_group["optimizer"])
    state.optimizer.lr = float(values["optimizer"]["lr"])  # callbacks may have changed it
    for name, parameter in parameters.items():
        parameter.value[...] = asarray(of_model[name], model.backend)
    for generator, its_state in of_generators:
        restore_generator(generator, its_state)
    training.order = arrays.get("order")
    training.losses.of_epoch[:] = progress["losses"]
    training.seconds_before = float(progress["seconds"])
    training.early_stopping.load_state_dict(progress["early_stopping"])
    training.early_stopping.weights = best
    state._set(
        history=history,
        epoch=progress["epoch"],
        step=progress["step"],
        step_in_epoch=progress["step_in_epoch"],
        best_epoch=progress["best_epoch"],
    )
    for callback, callback_state in callbacks:
        callback.load_state_dict(callback_state)


def _matched(callbacks: list[Callback], stored: list[dict[str, Any]]) -> list[tuple[Callback, Any]]:
    """Return each callback that had a state to keep, with that state."""
    found, left = [], list(callbacks)
    for each in stored:
        if each["state"] is None:
            continue
        name = each["class"]
        match = next((c for c in left if type(c).__qualname__ == name), None)
        if match is None:
            raise ValueError(
                f"callbacks has no further {name}, whose state the checkpoint holds; expected the "
                "callbacks with which the training began"
            )
        left.remove(match)
        found.append((match, each["state"]))
    return found


def _plain_settings(loss: Any) -> dict[str, Any]:
    """Return those settings of a loss that can be compared with those in a file."""
    found: dict[str, Any] = {}
    for name, value in vars(loss).items():
        if isinstance(value, tuple) and all(isinstance(item, int | float) for item in value):
            found[name] = list(value)
        elif isinstance(value, bool | int | float | str):
            found[name] = value
    return found


def _json(values: Any) -> Any:
    """Return values as they will be when they have been written to JSON and read."""
    if isinstance(values, dict):
        return {str(name): _json(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_json(value) for value in values]
    return values
