"""Training: the loop over epochs and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npformer.core import Array, Feed, Gradients, explained_memory_error
from npformer.engine.snapshot import Snapshot, snapshot_of
from npformer.optim import NonFiniteGradientError
from npformer.training.arguments import trains
from npformer.training.batches import Batches, Picked
from npformer.training.callbacks import Step, TrainingState, Watchers
from npformer.training.evaluation import Evaluation
from npformer.training.interrupts import Interrupts, Terminated, word_for
from npformer.training.loss_watch import LossWatch
from npformer.training.workers import Workers


@dataclass
class Training:
    """What the steps of a training need."""

    state: TrainingState
    batches: Batches
    workers: Workers
    watchers: Watchers
    losses: LossWatch  # among the watchers
    interrupts: Interrupts  # the last of them
    evaluate: Callable[[], Evaluation | None]  # on the validation data, if there are any
    clip_norm: float | None
    dropout: Any  # the generator of dropout's masks
    feed: Feed | None  # uploads batches to a device
    _checked: Snapshot | None = None  # the model's, when its parameters were last checked

    def to_the_end(self, contexts: ExitStack, alone: bool) -> BaseException | None:
        """Run, close the contexts, end all that watch, and return the signal that ended it, if any.

        `alone`: there are no other ranks. They would not know of a signal in the middle of a step.
        """
        state, stop = self.state, None
        try:
            with contexts:
                self.watchers.start(state)
                self.run()
            state.history.stopped = state.stopping or "finished"
        except (KeyboardInterrupt, Terminated) as signal:
            if not (alone or state._over):
                raise
            stop, state.history.stopped = signal, word_for(signal)
        except BaseException:
            state.history.stopped = "error"
            raise
        finally:
            with self.interrupts.held():
                state._set(_latest=replace(state._latest, rows=None, gradients=None))
                self.watchers.end(state)
        if stop is None and (stop := self.interrupts.take()) is not None:
            state.history.stopped = word_for(stop)
        return stop

    def run(self) -> None:
        """Take all steps that are left, unless a callback or a signal ends the training."""
        for _ in self.epochs():
            for batch in self.steps():
                loss, gradients = self.workers.step(batch, self.dropout)
                self.update(batch, loss, gradients)
        self.state._set(_over=True)
        self.watchers.call("after_training", self.state)

    def epochs(self) -> Iterator[int]:
        """Yield the epochs that are left: first the rest of the one that is under way, if any.

        A callback that stops the training in the last step of an epoch leaves it its evaluation; a
        signal does not, and the training would go on with it.
        """
        state, batches = self.state, self.batches
        while not state._signal:
            if batches.order is None:
                if state.stopping is not None or state.epoch >= state.epochs:
                    return
                batches.begin()
                state._place.epoch, state._place.step_in_epoch = state.epoch + 1, 0
                self.watchers.call("before_epoch", state)
            yield state.epoch
            if state._signal or state.step_in_epoch < state.n_steps:
                return
            state._set(evaluation=self.evaluate())
            batches.order = None
            self.watchers.call("after_epoch", state)

    def steps(self) -> Iterator[Picked]:
        """Yield the batches of the epoch that are left."""
        state = self.state
        while state.step_in_epoch < state.n_steps and not (state._signal or state.stopping):
            snapshot = self._checked_snapshot()
            yield self.batches.pick(state.step_in_epoch, state.model, snapshot, self.feed)

    def update(self, picked: Picked, loss: Array, gradients: Gradients) -> None:
        """Take a step of the optimizer, and let all watch it."""
        state, n = self.state, len(picked.rows)
        by, of_steps = self.workers.shared_by, state.history.workers
        of_steps[by] = of_steps.get(by, 0) + 1
        shown = None if self.workers.sharded else gradients
        number = state.optimizer.steps + 1
        state._place.step_in_epoch += 1
        state._set(_latest=Step(number, picked.rows, shown, loss))
        self.watchers.call("before_update", state)
        explained = explained_memory_error(picked.snapshot.backend, n)
        with np.errstate(over="ignore", invalid="ignore"), explained, self.interrupts.held():
            try:
                self.workers.clip(gradients, self.clip_norm)
                state.optimizer.step(gradients)
            except NonFiniteGradientError:
                self.losses.read(state)  # if a loss is not finite, that says where it began
                raise
        self.watchers.call("after_step", state)
        state._set(_latest=Step(number, loss=loss))

    def _checked_snapshot(self) -> Snapshot:
        """Return the model's snapshot; if it is new, check that the optimizer still fits."""
        snapshot = snapshot_of(self.state.model)
        if snapshot is self._checked:
            return snapshot
        if not trains(self.state.optimizer, self.state.model):
            raise ValueError(
                "the model's parameters are no longer the optimizer's: during the training, a "
                "layer was replaced or a parameter frozen. Expected the same parameters until the "
                "training ends: change the model before fit, or call fit again"
            )
        self._checked = snapshot
        return snapshot
