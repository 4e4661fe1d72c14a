"""What a copy of this process does: answer requests until the original closes the pipe, or ends."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MEANT_FOR_THE_ORIGINAL = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
"""Ctrl-C, a service manager and a closing terminal reach all processes of a group."""

PR_SET_PDEATHSIG = 1


def serve(
    k: int,
    pipe: Connection,
    ends_of_others: list[Connection],
    answer: Callable[[int, Any], Any],
    original: int,
    mask: Iterable[int],
) -> None:
    """Answer requests, in a copy, until the pipe is closed.

    `original` is the process that was copied. All signals are blocked until this copy has decided
    what to do about them; from then on, only those of `mask` are.
    """
    import traceback

    _end_with(original)
    _leave_signals_to_the_original()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for other in ends_of_others:  # a pipe is closed only once no process has this end open
        other.close()
    gc.freeze()  # the collector need not look at older objects
    while True:
        try:
            request = pipe.recv()
        except (
            EOFError,
            ConnectionError,
        ):  # the original has closed it, perhaps with an answer unread
            return
        try:
            reply: tuple[Any, BaseException | None] = (answer(k, request), None)
        except Exception as error:
            error.add_note(f"In a worker process:\n{traceback.format_exc()}")
            reply = (None, _sendable(error))
        try:
            pipe.send(reply)
        except ConnectionError:
            return
        except Exception as unsendable:
            text = f"an answer could not be sent ({unsendable}): {reply[1] or type(reply[0])}"
            pipe.send((None, RuntimeError(text)))


def _end_with(original: int) -> None:
    """Let the kernel kill this copy when the original ends, even if the copy is stopped or busy.

    Otherwise it would end later, when it next looks at its pipe, and until then hold the original's
    files open, with their locks.
    """
    with suppress(ImportError, OSError, AttributeError):  # without it, the pipe has to do
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != original:  # it has already ended
        os._exit(1)


def _leave_signals_to_the_original() -> None:
    """Ignore signals that the original handles: it stops its copies itself, when it is ready."""
    for number in signal.valid_signals():
        handled = callable(signal.getsignal(number))
        if number == signal.SIGCHLD:  # ignoring it would hide exit codes from `subprocess`
            if handled:
                signal.signal(number, signal.SIG_DFL)
        elif handled or number in MEANT_FOR_THE_ORIGINAL:
            signal.signal(number, signal.SIG_IGN)


def _sendable(error: Exception) -> Exception:
    """Return the error itself if it survives pickling, else one that describes it.

    An exception that takes other arguments than its base class can be pickled but not unpickled.
    """
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        described = RuntimeError(f"{type(error).__name__}: {error}")
        for note in error.__notes__:
            described.add_note(note)
        return described
    return error
