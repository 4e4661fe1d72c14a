"""Signals that wait while something must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


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
    handlers: dict[int, Handler] = {}
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
        try:
            _restore(handlers)
        except BaseException:  # Ctrl-C, once its handler was back: the others are not yet
            _restore(handlers)
            raise
        finally:
            _raise_all(received)


def _restore(handlers: dict[int, Handler]) -> None:
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


def _raise_all(signums: list[int]) -> None:
    """Raise each signal, although the handler of one before it may raise an exception."""
    if signums:
        try:
            signal.raise_signal(signums[0])
        finally:
            _raise_all(signums[1:])
