"""Training: the loop over epochs and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import Array, Feed, Gradients, explained_memory_error
from npformer.engine.snapshot import snapshot_of
from npformer.optim import NonFiniteGradientError
from npformer.training.arguments import trains
from npformer.training.batches import Batches, Picked
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.evaluation import Evaluation
from npformer.training.interrupts import Interrupts, Terminated, word_for
from npformer.training.loss_watch import LossWatch
from npformer.training.workers import Workers


@dataclass
class Training:
    """The loop of a training, and what its steps need."""

    state: TrainingState
    batches: Batches
    workers: Workers
    watchers: Sequence[Callback]  # in the order in which they are called
    losses: LossWatch  # among the watchers
    interrupts: Interrupts  # the last of them
    evaluate: Callable[[], Evaluation | None]  # on the validation data, if there are any
    clip_norm: float | None
    dropout: Any  # the generator of dropout's masks
    feed: Feed | None  # uploads batches to a device

    def to_the_end(self, contexts: ExitStack) -> BaseException | None:
        """Run, close the contexts, end the watchers, and return the signal that ended it, if any.

        Only watchers whose `on_start` succeeded are ended. With several ranks a signal in the
        middle of a step is raised: the other ranks do not know of it.
        """
        state, stop, started = self.state, None, []
        try:
            with contexts:
                for each in self.watchers:
                    each.on_start(state)
                    started.append(each)
                self.run()
            state.history.stopped = state.stopping or "finished"
        except (KeyboardInterrupt, Terminated) as signal:
            if not (state.n_ranks == 1 or state._now.over):
                raise
            stop, state.history.stopped = signal, word_for(signal)
        except BaseException:
            state.history.stopped = "error"
            raise
        finally:
            with self.interrupts.held(), ExitStack() as ending:  # each, even if another raises
                state._now.rows = state._now.gradients = None
                for each in reversed(started):  # a stack: the last one pushed is called first
                    ending.callback(each.on_end, state)
        if stop is None and (stop := self.interrupts.take()) is not None:
            state.history.stopped = word_for(stop)
        return stop

    def run(self) -> None:
        """Take all remaining steps, unless a callback or a signal ends the training."""
        for _ in self.epochs():
            for batch in self.steps():
                self.update(batch, *self.workers.step(batch, self.dropout))
        self.state._now.over = True
        self.call("after_training")

    def call(self, hook: str) -> None:
        """Call one method of all watchers."""
        for each in self.watchers:
            getattr(each, hook)(self.state)

    def epochs(self) -> Iterator[int]:
        """Yield the remaining epochs: first the rest of the unfinished one, if any.

        If a callback stops the training in the last step of an epoch, the epoch is still evaluated;
        after a signal it is not, and a resumed training begins with that evaluation.
        """
        state, batches, now = self.state, self.batches, self.state._now
        while not now.signal:
            if batches.order is None:
                if state.stopping is not None or state.epoch >= state.epochs:
                    return
                batches.begin()
                now.epoch, now.step_in_epoch = now.epoch + 1, 0
                self.call("before_epoch")
            yield state.epoch
            if now.signal or state.step_in_epoch < state.n_steps:
                return
            state._set(evaluation=self.evaluate())
            batches.order = None
            self.call("after_epoch")

    def steps(self) -> Iterator[Picked]:
        """Yield the epoch's remaining batches; if the model has changed, check the optimizer."""
        state, checked = self.state, None
        while state.step_in_epoch < state.n_steps and not (state._now.signal or state.stopping):
            snapshot = snapshot_of(state.model)
            if snapshot is not checked and not trains(state.optimizer, state.model):
                raise ValueError(
                    "the model's parameters are no longer the optimizer's: during the training, a "
                    "layer was replaced or a parameter frozen. Expected no change until it ends: "
                    "change the model before fit, or call fit again"
                )
            checked = snapshot
            yield self.batches.pick(state.step_in_epoch, state.model, snapshot, self.feed)

    def update(self, picked: Picked, loss: Array, gradients: Gradients) -> None:
        """Take a step of the optimizer, and call the watchers."""
        state, now, n = self.state, self.state._now, len(picked.rows)
        by, of_steps = self.workers.shared_by, state.history.workers
        of_steps[by] = of_steps.get(by, 0) + 1
        now.step, now.step_in_epoch = state.optimizer.steps + 1, now.step_in_epoch + 1
        now.rows, now.loss = picked.rows, loss
        now.gradients = None if self.workers.sharded else gradients
        self.call("before_update")
        explained = explained_memory_error(picked.snapshot.backend, n)
        with np.errstate(over="ignore", invalid="ignore"), explained, self.interrupts.held():
            try:
                self.workers.clip(gradients, self.clip_norm)
                state.optimizer.step(gradients)
            except NonFiniteGradientError:
                self.losses.read(state)  # a loss that is not finite says where it began
                raise
        self.call("after_step")
        now.rows = now.gradients = None
