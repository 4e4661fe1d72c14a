"""What `fit` itself does beside the steps, as callbacks: watch, record, keep the best, show."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import Array, array_module, explained_memory_error, to_numpy
from npformer.inspection.non_finite import first_non_finite, non_finite_parameter
from npformer.models import Batch
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.evaluation import Evaluation
from npformer.training.history import NonFiniteLossError


class BestWeights(Callback):
    """The best weights so far, kept on the host, and put back at the end."""

    def __init__(self, model: SequenceClassifier) -> None:
        self.model = model
        self.epoch: int | None = None
        self._score = (-math.inf, -math.inf)
        self._weights: dict[str, np.ndarray] = {}

    def after_epoch(self, state: TrainingState) -> None:
        """Keep the model's weights if they are better than those kept."""
        if state.evaluation is not None:
            self._offer(state.epoch, state.evaluation)
            state._set(best_epoch=self.epoch)

    def on_end(self, state: TrainingState) -> None:
        """Put the best weights back, and say of which epoch the model's weights are."""
        for name, parameter in self.model.parameters().items():
            if name in self._weights:
                parameter[...] = array_module(parameter).asarray(self._weights[name])
        whole = len(state.history.train_loss) == state.epoch > 0
        last = state.epoch if whole else None
        state.history.best_epoch = last if self.epoch is None else self.epoch

    def kept(self) -> str:
        """Return what `on_end` leaves, in words."""
        if self.epoch is None:
            return "No best weights were kept, so the model is as it was when this was found"
        return f"The model has the best weights so far, those of epoch {self.epoch}"

    def _offer(self, epoch: int, found: Evaluation) -> None:
        score = (0.0 if math.isnan(found.accuracy) else found.accuracy, -found.loss)
        if score > self._score:
            self._score, self.epoch = score, epoch
            self._weights = {n: to_numpy(p).copy() for n, p in self.model.parameters().items()}


class LossWatch(Callback):
    """Losses of an epoch, read in batches, for each reading waits for the device."""

    def __init__(self, data: Batch, held_out: Batch | None, every: int, best: BestWeights) -> None:
        self.data = data
        self.held_out = held_out
        self.every = every
        self.best = best
        self._unread: list[tuple[Array, int, Array]] = []
        self._read: list[float] = []

    def before_update(self, state: TrainingState) -> None:
        """Take a step's loss, before its update; look at all unread ones every so many steps."""
        self._unread.append((state._loss, state.step, state.rows))
        if len(self._unread) >= self.every:
            self._look(state, updates=state.step - 1)

    def mean(self, state: TrainingState) -> float:
        """Return the mean loss of an epoch that is over, and begin another."""
        self._look(state, updates=state.step)
        mean = float(np.mean(self._read))
        self._read.clear()
        return mean

    def after_epoch(self, state: TrainingState) -> None:
        """Look at the validation loss."""
        found = state.evaluation
        if self.held_out is not None and found is not None and not math.isfinite(found.loss):
            found_in = culprit(state.model, self.held_out)
            raise NonFiniteLossError(state.step, found_in, self.best.kept(), "the validation loss")

    def finish(self, state: TrainingState) -> None:
        """Look at what the last steps left, when there are no more."""
        self._look(state, updates=state.step)
        # No loss comes after the last update; without best weights nothing else would tell.
        if self.best.epoch is None and (wrong := non_finite_parameter(state.model)) is not None:
            raise NonFiniteLossError(state.step, wrong, self.best.kept(), "the update")

    def _look(self, state: TrainingState, updates: int) -> None:
        """Read the losses; `updates` of the model have happened, some maybe since a bad loss."""
        if not self._unread:
            return
        first = self._unread[0][0]
        values = to_numpy(array_module(first).stack([loss for loss, _, _ in self._unread]))
        for value, (_, step, rows) in zip(values.tolist(), self._unread, strict=True):
            if not math.isfinite(value):
                with explained_memory_error(state.model.backend, len(rows)):
                    found = culprit(state.model, self.data.of_rows(rows))
                notes = self.best.kept()
                if updates >= step and found != "the input x":
                    notes += (
                        f". This was seen {updates - step + 1} updates later, when NaN had spread; "
                        "check_every=1 finds the tensor where it began"
                    )
                raise NonFiniteLossError(step, found, notes)
            self._read.append(value)
        self._unread.clear()


class Recorder(Callback):
    """What goes into the history."""

    def __init__(self, watch: LossWatch) -> None:
        self.watch = watch

    def after_step(self, state: TrainingState) -> None:
        """Note an epoch whose last step this was, before another callback changes lr."""
        if state.step_in_epoch < state.n_steps:
            return
        history, optimizer = state.history, state.optimizer
        history.train_loss.append(self.watch.mean(state))
        history.lr.append(float(optimizer.lr * optimizer.schedule(optimizer.steps)))
        history.seconds.append(time.perf_counter() - state._began)

    def after_epoch(self, state: TrainingState) -> None:
        """Note what was found on the validation data."""
        if state.evaluation is not None:
            state.history.validation_loss.append(state.evaluation.loss)
            if not math.isnan(state.evaluation.accuracy):
                state.history.validation_accuracy.append(state.evaluation.accuracy)


class Patience(Callback):
    """Stops after so many epochs without a better one."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def after_epoch(self, state: TrainingState) -> None:
        """Ask how many epochs ago the best one was."""
        if state.epoch - (state.best_epoch or 0) >= self.epochs:
            state.stop("patience")


class ProgressBar(Callback):
    """A bar on stderr, of all steps; after an epoch it says how it went."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._bar: Any

    def on_start(self, state: TrainingState) -> None:
        """Draw it."""
        from tqdm import tqdm

        total = state.epochs * state.n_steps
        self._bar = tqdm(total=total, disable=not self.shown, unit="step", leave=True)

    def after_step(self, state: TrainingState) -> None:
        """Move it."""
        self._bar.update(1)

    def after_epoch(self, state: TrainingState) -> None:
        """Write the epoch's figures behind it."""
        figures = {"loss": f"{state.history.train_loss[-1]:.4f}"}
        if state.evaluation is not None:
            found = state.evaluation
            shown = found.loss if math.isnan(found.accuracy) else found.accuracy
            figures["validation"] = f"{shown:.4f}"
        self._bar.set_postfix(figures)

    def on_end(self, state: TrainingState) -> None:
        """Leave it where it is."""
        self._bar.close()


def culprit(model: SequenceClassifier, samples: Batch, at_once: int = 256) -> str:
    """Return the name of the first tensor that is not finite when a model sees samples."""
    x, mask = samples.x, None if samples.padding is None else samples.padding.mask
    kept = x if mask is None else x[mask]  # padding may hold anything
    if x.dtype.kind == "f" and not np.isfinite(kept).all():
        return "the input x"
    for start in range(0, len(x), at_once):
        rows = slice(start, start + at_once)
        with np.errstate(all="ignore"):
            found = first_non_finite(model, x[rows], None if mask is None else mask[rows])
        if found is not None:
            return found
    return "the loss itself (every layer's output is finite at evaluation)"
