"""Signals that wait while something must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def signals_wait() -> Iterator[None]:
    """Let handlers that are written in Python, Ctrl-C's among them, run after a body.

    For short bodies that an exception at any moment would leave in a state that nothing mends,
    such as the import of a large package. Outside of the main thread, where no handler runs,
    nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {}
    received: list[int] = []

    def note(signum: int, frame: FrameType | None) -> None:
        if signum not in received:
            received.append(signum)

    try:
        for signum in signal.valid_signals():
            handler = signal.getsignal(signum)
            if callable(handler):  # what the system does with other signals is not written here
                handlers[signum] = handler
                signal.signal(signum, note)
        yield
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
        for number in received:
            signal.raise_signal(number)
