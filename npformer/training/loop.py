"""The loop of a training over epochs and steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from npformer.core import Array, Gradients, guard_computation
from npformer.models.batch import Batch
from npformer.models.step import Step
from npformer.optim import NonFiniteGradientError
from npformer.optim.own_parameters import CHANGED_MODEL, check_trains
from npformer.training.batches import Batches
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.signals import Interrupts, Terminated, word_for
from npformer.training.steps import Update
from npformer.training.watchers import Recorder


@dataclass
class Training:
    """The loop of a training, and what its steps need."""

    state: TrainingState
    batches: Batches
    step: Step  # computes a batch's loss and gradients
    update: Update  # updates the weights by gradients
    watchers: Sequence[Callback]  # in the order in which they are called
    recorder: Recorder  # among the watchers
    interrupts: Interrupts  # the last of them
    resources: ExitStack  # what is closed after the last step, before the watchers are ended
    stop: BaseException | None = field(default=None, init=False)  # the signal that ended `run`
    _started: list[Callback] = field(default_factory=list, init=False)

    def run(self) -> None:
        """Take all remaining steps, unless a callback or a signal ends the training.

        If a callback stops the training in the last step of an epoch, the epoch is still evaluated;
        after a signal it is not, and a resumed training begins with that evaluation.
        """
        state = self.state
        try:
            with self.resources:
                self._start()
                for _ in self._epochs_left():
                    for rows, batch in self._batches_left():
                        loss, gradients = self.step(batch)
                        state._now.has_targets = batch.has_targets
                        self._update_weights(rows, loss, gradients)
                state._now.over = True
                self._call("after_training")
            state.history.stopped = state.stopping or "finished"
        except BaseException as error:
            if not self._note_signal(error):
                raise
        finally:
            with self.interrupts.held:
                self._end()
        if self.stop is None:
            self._take_last_signal()

    def _start(self) -> None:
        """Start the watchers."""
        for watcher in self.watchers:
            watcher.on_start(self.state)
            self._started.append(watcher)

    def _epochs_left(self) -> Iterator[int]:
        """Yield the number of each epoch that is left, and call the watchers around it.

        The first may have begun before a checkpoint.
        """
        now = self.state._now
        while self._has_epoch_left():
            if self.batches.order is None:
                self._begin_epoch()
            yield now.epoch
            if now.signal or now.step_in_epoch < self.state.n_steps:
                return
            self.batches.order = None
            self._call("after_epoch")

    def _has_epoch_left(self) -> bool:
        """Return whether an epoch goes on, or another is to begin."""
        state = self.state
        if state._now.signal:
            return False
        goes_on = self.batches.order is not None
        return goes_on or (state.stopping is None and state.epoch < state.epochs)

    def _begin_epoch(self) -> None:
        """Draw the order of an epoch, and call the watchers."""
        self.batches.begin()
        self.state._now.epoch += 1
        self.state._now.step_in_epoch = 0
        self._call("before_epoch")

    def _batches_left(self) -> Iterator[tuple[np.ndarray, Batch]]:
        """Yield the batches that are left in the epoch, each with the rows of its samples."""
        state = self.state
        now = state._now
        while now.step_in_epoch < state.n_steps and not (now.signal or state.stopping):
            yield self.batches.pick(now.step_in_epoch)

    def _update_weights(self, rows: np.ndarray, loss: Array, gradients: Gradients) -> None:
        """Update the weights, and call the watchers before and after it."""
        state = self.state
        check_trains(state.optimizer.parameters, gradients.parameters, CHANGED_MODEL)
        now = state._now
        now.step = state.optimizer.steps + 1
        now.step_in_epoch += 1
        now.rows = rows
        now.loss = loss
        now.gradients = gradients
        now.shared_by = self.step.shared_by
        self._call("before_update")
        with guard_computation(state.model.backend, len(rows)), self.interrupts.held:
            self.update.step(gradients)
        self._call("after_step")
        now.rows = None
        now.gradients = None

    def _call(self, hook: str) -> None:
        """Call one method of all watchers."""
        for watcher in self.watchers:
            getattr(watcher, hook)(self.state)

    def _note_signal(self, error: BaseException) -> bool:
        """Note why the training ended; return False if the error is to be raised.

        With several ranks, that is also a signal in the middle of a step: the others do not know
        of it.
        """
        state = self.state
        if isinstance(error, KeyboardInterrupt | Terminated):
            if state.n_ranks > 1 and not state._now.over:
                return False
            self.stop = error
            state.history.stopped = word_for(error)
            return True
        state.history.stopped = "error"
        if isinstance(error, NonFiniteGradientError):
            self.recorder.read(state)  # a loss that is not finite says where it began
        return False

    def _end(self) -> None:
        """End each watcher that has started, even if another raises an error."""
        self.state._now.rows = None
        self.state._now.gradients = None
        with ExitStack() as ending:
            for watcher in reversed(self._started):  # a stack: the last one pushed is called first
                ending.callback(watcher.on_end, self.state)

    def _take_last_signal(self) -> None:
        """Let a signal that came while the watchers were ended count as well."""
        self.stop = self.interrupts.take()
        if self.stop is not None:
            self.state.history.stopped = word_for(self.stop)
