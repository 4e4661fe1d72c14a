"""The signals that end a training."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Self

from npformer.training.callbacks import Callback, TrainingState


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

    held: threading.Lock = field(default_factory=threading.Lock, init=False)
    _signum: int = field(default=0, init=False)  # of the waiting signal; 0 if there is none
    _replaced_handlers: dict[int, Any] = field(default_factory=dict, init=False)

    def on_start(self, state: TrainingState) -> None:
        """Let a signal that has come end the training before its first step."""
        self._tell(state)

    def after_step(self, state: TrainingState) -> None:
        """Let a signal that has come end the training after this step."""
        self._tell(state)

    def after_epoch(self, state: TrainingState) -> None:
        """Let a signal that has come end the training after this epoch."""
        self._tell(state)

    def _tell(self, state: TrainingState) -> None:
        """Tell the loop whether a signal has come."""
        state._now.signal = self._signum != 0

    def after_training(self, state: TrainingState) -> None:
        """Raise KeyboardInterrupt or `Terminated` if such a signal has come."""
        exception = self.take()
        if exception is not None:
            raise exception

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for signum, default_handler in ENDING.items():
                if signal.getsignal(signum) == default_handler:
                    self._replaced_handlers[signum] = signal.signal(signum, self._receive)
        return self

    def __exit__(self, *exception: object) -> None:
        for signum, handler in self._replaced_handlers.items():
            signal.signal(signum, handler)
        self._replaced_handlers.clear()

    def take(self) -> KeyboardInterrupt | Terminated | None:
        """Return the exception for a waiting signal, once."""
        signum = self._signum
        self._signum = 0
        if signum == 0:
            return None
        return KeyboardInterrupt() if signum == signal.SIGINT else Terminated(128 + signum)

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        is_second = self._signum != 0
        self._signum = signum
        if is_second and not self.held.locked():
            exception = self.take()
            if exception is not None:
                raise exception


def word_for(stop: BaseException) -> str:
    """Return the word for a signal in `History.stopped`."""
    return "terminated" if isinstance(stop, Terminated) else "interrupted"
