"""Interrupts: Ctrl-C and SIGTERM end a training between two steps, never within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class Terminated(SystemExit):
    """SIGTERM or SIGHUP ended a training; if nobody catches it, the process exits quietly.

    Its status is what shells report for the signal: 143 for SIGTERM.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum


class Interrupts:
    """Signals wait until `check` is called, which a training does between two steps.

    A second one does not wait, so that a step which hangs can be left; but an update of the weights
    is always finished (`held`). Only in the main thread, the only one that signals reach, and only
    where nobody has installed a handler of their own.
    """

    def __init__(self) -> None:
        self._waiting: KeyboardInterrupt | Terminated | None = None
        self._held = 0
        self._before: dict[int, Any] = {}

    @property
    def waiting(self) -> bool:
        """Whether a signal has come."""
        return self._waiting is not None

    @property
    def signum(self) -> int:
        """The number of the signal that has come; 0 if none has."""
        if isinstance(self._waiting, Terminated):
            return self._waiting.signum
        return 0 if self._waiting is None else int(signal.SIGINT)

    def receive(self, signum: int) -> None:
        """Take over a signal that came to another rank."""
        self._waiting = KeyboardInterrupt() if signum == signal.SIGINT else Terminated(signum)

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

    def check(self) -> None:
        """Raise KeyboardInterrupt or `Terminated` if such a signal has come."""
        if (waiting := self.take()) is not None:
            raise waiting

    def take(self) -> KeyboardInterrupt | Terminated | None:
        """Return what `check` would raise, once."""
        waiting, self._waiting = self._waiting, None
        return waiting

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let even a second signal wait until the end of the ``with`` statement."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def _receive(self, signum: int, frame: FrameType | None) -> None:
        again = self._waiting is not None
        self.receive(signum)
        if again and not self._held:
            self.check()


def word_for(stop: BaseException) -> str:
    """Return what `History.stopped` says of a signal."""
    return "terminated" if isinstance(stop, Terminated) else "interrupted"
