"""The loop of a training over epochs and steps, and the signals that end it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Self

import numpy as np

from npformer.core import Array, Gradients, guarded_computation
from npformer.models.step import Step
from npformer.optim import NonFiniteGradientError, clip_by_global_norm
from npformer.training.arguments import CHANGED_MODEL, check_trains
from npformer.training.batches import Batches
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.distributed import Communicator
from npformer.training.watchers import Recorder


@dataclass
class Training:
    """The loop of a training, and what its steps need."""

    state: TrainingState
    batches: Batches
    step: Step  # computes the steps
    dropout: Any  # the generator of dropout's masks
    clip_norm: float | None  # the norm to which gradients are clipped, if they are
    watchers: Sequence[Callback]  # in the order in which they are called
    recorder: Recorder  # among the watchers
    interrupts: Interrupts  # the last of them

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
        except (KeyboardInterrupt, Terminated) as error:
            if not (state.n_ranks == 1 or state._now.over):
                raise
            stop, state.history.stopped = error, word_for(error)
        except BaseException as error:
            state.history.stopped = "error"
            if isinstance(error, NonFiniteGradientError):
                self.recorder.read(state)  # a loss that is not finite says where it began
            raise
        finally:
            with self.interrupts.held, ExitStack() as ending:  # each, even if another raises
                state._now.rows = state._now.gradients = None
                for each in reversed(started):  # a stack: the last one pushed is called first
                    ending.callback(each.on_end, state)
        if stop is None and (stop := self.interrupts.take()) is not None:
            state.history.stopped = word_for(stop)
        return stop

    def run(self) -> None:
        """Take all remaining steps, unless a callback or a signal ends the training.

        The first may be the rest of an unfinished epoch. If a callback stops the training in the
        last step of an epoch, the epoch is still evaluated; after a signal it is not, and a resumed
        training begins with that evaluation.
        """
        state, batches, now = self.state, self.batches, self.state._now
        while not now.signal:
            if batches.order is None:  # an epoch begins
                if state.stopping is not None or now.epoch >= state.epochs:
                    break
                batches.begin()
                now.epoch, now.step_in_epoch = now.epoch + 1, 0
                self.call("before_epoch")
            while now.step_in_epoch < state.n_steps and not (now.signal or state.stopping):
                rows, batch = batches.pick(now.step_in_epoch)
                self.update(rows, *self.step.step(batch, self.dropout))
            if now.signal or now.step_in_epoch < state.n_steps:
                break
            batches.order = None
            self.call("after_epoch")
        now.over = True
        self.call("after_training")

    def call(self, hook: str) -> None:
        """Call one method of all watchers."""
        for each in self.watchers:
            getattr(each, hook)(self.state)

    def update(self, rows: np.ndarray, loss: Array, gradients: Gradients) -> None:
        """Take a step of the optimizer, and call the watchers."""
        state, now = self.state, self.state._now
        check_trains(state.optimizer.parameters, gradients.parameters, CHANGED_MODEL)
        now.step, now.step_in_epoch = state.optimizer.steps + 1, now.step_in_epoch + 1
        now.rows, now.loss, now.gradients, now.by = rows, loss, gradients, self.step.shared_by
        self.call("before_update")
        with guarded_computation(state.model.backend, len(rows)), self.interrupts.held:
            if self.clip_norm is not None:  # several ranks have their own way
                clip = getattr(self.step, "clip", clip_by_global_norm)
                clip(gradients, self.clip_norm)
            state.optimizer.step(gradients)
        self.call("after_step")
        now.rows = now.gradients = None


class Terminated(SystemExit):
    """SIGTERM or SIGHUP ended a training; if nothing catches it, the process exits quietly.

    Its exit status is the one that shells report for the signal: 143 for SIGTERM.
    """


ENDING: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""The signals that end a training, with their default handlers."""
if hasattr(signal, "SIGHUP"):  # Windows has none
    ENDING[signal.SIGHUP] = signal.SIG_DFL


@dataclass
class Interrupts(Callback):
    """Makes signals wait for the end of a step, or of an epoch with its evaluation.

    A second signal does not wait, so that a step that hangs can be left; but an update of the
    weights is always finished: in ``with interrupts.held`` every signal waits. It works in the main
    thread, the only one that receives signals, and replaces only default handlers.
    """

    _ranks: Communicator
    _signum: int = 0  # of the waiting signal; 0 if there is none
    held: threading.Lock = field(default_factory=threading.Lock)
    _before: dict[int, Any] = field(default_factory=dict)

    def on_start(self, state: TrainingState) -> None:
        """Note whether any rank has received a signal; share one rank's `stop` with all."""
        if self._ranks.size > 1:
            told = self._ranks.agree(self._signum, state.stopping is not None)
            if not self._signum and told[:, 0].any():
                self._signum = int(told[:, 0].max())
            if told[:, 1].any() and not told[:, 1].all():
                state._set(stopping=next(filter(None, self._ranks.gather(state.stopping))))
        state._now.signal = self._signum != 0

    after_step = after_epoch = on_start

    def after_training(self, state: TrainingState) -> None:
        """Raise KeyboardInterrupt or `Terminated` if such a signal has come."""
        if (waiting := self.take()) is not None:
            raise waiting

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            usual = [n for n, handler in ENDING.items() if signal.getsignal(n) == handler]
            self._before = {n: signal.signal(n, self._receive) for n in usual}
        return self

    def __exit__(self, *exception: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        self._before.clear()

    def take(self) -> KeyboardInterrupt | Terminated | None:
        """Return the exception for a waiting signal, once."""
        signum, self._signum = self._signum, 0
        if signum == 0:
            return None
        return KeyboardInterrupt() if signum == signal.SIGINT else Terminated(128 + signum)

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        again, self._signum = self._signum != 0, signum
        if again and not self.held.locked() and (waiting := self.take()) is not None:
            raise waiting


def word_for(stop: BaseException) -> str:
    """Return the word for a signal in `History.stopped`."""
    return "terminated" if isinstance(stop, Terminated) else "interrupted"
