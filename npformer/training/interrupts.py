"""Interrupts: Ctrl-C and SIGTERM end a training between two steps, never within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from npformer.training.callbacks import Callback, TrainingState
from npformer.training.distributed import Communicator


class Terminated(SystemExit):
    """SIGTERM or SIGHUP ended a training; if nothing catches it, the process exits quietly.

    Its exit status is the one that shells report for the signal: 143 for SIGTERM.
    """


class Interrupts(Callback):
    """Makes signals wait for the end of a step, or of an epoch with its evaluation.

    A second signal does not wait, so that a step that hangs can be left; but an update of the
    weights is always finished (`held`). It works in the main thread, the only one that receives
    signals, and replaces only default handlers.
    """

    def __init__(self, ranks: Communicator) -> None:
        self._ranks = ranks
        self._signum = 0  # of the waiting signal; 0 if there is none
        self._held = 0
        self._before: dict[int, Any] = {}

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
            usual = {"SIGINT": signal.default_int_handler}
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
                signum = getattr(signal, name, None)
                handler = usual.get(name, signal.SIG_DFL)
                if signum is not None and signal.getsignal(signum) == handler:
                    self._before[signum] = signal.signal(signum, self._receive)
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

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make even a second signal wait until the end of the ``with`` statement."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        again, self._signum = self._signum != 0, signum
        if again and not self._held and (waiting := self.take()) is not None:
            raise waiting


def word_for(stop: BaseException) -> str:
    """Return the word for a signal in `History.stopped`."""
    return "terminated" if isinstance(stop, Terminated) else "interrupted"
