"""Copies of this process that compute beside it.

A thread needs the interpreter's lock between two calls of NumPy. If calls are short, waiting for it
takes a third of the time. A copy of the whole process has a lock of its own. It takes hundredths of
a second to make and begins with everything that this process has. Later changes reach it only as
messages, or through arrays from `shared_array`.
"""

from __future__ import annotations

import gc
import mmap
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from npformer.engine.blas import ONE_BLAS_THREAD

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

PATIENCE = 1.0
"""Seconds that all copies together may take to end by themselves."""


class CannotCopyError(OSError):
    """The system makes no more processes: there are too many, or there is no memory."""


class CopyDiedError(RuntimeError):
    """A copy of this process ended in the middle of its work."""


def possible(asked_for: bool = False) -> bool:
    """Whether this process may be copied.

    Only on Linux: macOS's own libraries do not survive it. Only from the main thread: no other one
    is copied, and a lock that it holds stays locked in the copy. And only if it is asked for in a
    process that `multiprocessing` or a pool made, because those are parallel enough.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return False
    import multiprocessing

    if asked_for:
        return not multiprocessing.current_process().daemon
    return multiprocessing.parent_process() is None


refused = False
"""Whether the system has refused to make a copy. Then "auto" no longer tries, because Python leaves
files open after each failed attempt."""


def shared_array(size: int, dtype: Any) -> np.ndarray:
    """Return a vector of zeros that this process shares with its later copies.

    Raises `CannotCopyError` if the system has no memory for it.
    """
    dtype = np.dtype(dtype)
    try:
        memory = mmap.mmap(-1, max(size * dtype.itemsize, 1))  # anonymous, shared with copies
    except OSError as error:
        raise CannotCopyError(f"there is no memory that copies could share ({error})") from error
    return np.frombuffer(memory, dtype, size)


class Copies:
    """Copies of this process, each of which answers requests until it is told to stop.

    Copy k, counted from 0, calls ``answer(k, request)`` and sends back what that returns or raises;
    both ways by pickle. Copies end with this process at the latest, and with the body of a ``with``
    statement: at once if it raised. Raises `CannotCopyError` if the system makes no more processes.
    """

    def __init__(self, n: int, answer: Callable[[int, Any], Any]) -> None:
        import multiprocessing

        fork = multiprocessing.get_context("fork")
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        try:
            for k in range(n):
                here, there = fork.Pipe()
                self._pipes.append(here)
                process = fork.Process(
                    target=_serve,
                    args=(k, there, list(self._pipes), answer),
                    name=f"npformer-{k}",
                    daemon=True,  # stopped by Python if this process exits without `close`
                )
                with warnings.catch_warnings():
                    # Python 3.12 and later warn that other threads are not copied: see `possible`.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                self._processes.append(process)
                there.close()
        except OSError as error:
            global refused
            refused = True
            _close(self._pipes, self._processes)
            raise CannotCopyError(
                f"the system makes no more processes ({error}); processes=False computes in threads"
            ) from error
        except BaseException:
            _close(self._pipes, self._processes)
            raise
        self._closing = weakref.finalize(self, _close, self._pipes, self._processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.close(at_once=kind is not None)

    def __len__(self) -> int:
        return len(self._pipes)

    def ask(self, k: int, request: Any) -> None:
        """Send a request to copy k, or raise `CopyDiedError` if it has ended."""
        try:
            self._pipes[k].send(request)
        except OSError as error:
            raise self._died(k) from error

    def answer(self, k: int) -> Any:
        """Return copy k's answer, or raise what it raised, or `CopyDiedError` if it has ended."""
        try:
            result, error = self._pipes[k].recv()
        except (EOFError, OSError) as lost:
            raise self._died(k) from lost
        if error is not None:
            raise error
        return result

    def close(self, at_once: bool = False) -> None:
        """Stop all copies: at once, or within `PATIENCE` seconds, in which they may finish."""
        if self._closing.detach() is not None:
            _close(self._pipes, self._processes, at_once)

    def _died(self, k: int) -> CopyDiedError:
        process = self._processes[k]
        process.join(PATIENCE)
        return CopyDiedError(
            f"worker process {k + 1} of {len(self)} ended in the middle of its work (exit code "
            f"{process.exitcode}; -9 is what the system does when memory runs out). A smaller "
            "batch_size takes less memory, in training also micro_batch; processes=False computes "
            "in threads"
        )


def _serve(
    k: int,
    pipe: Connection,
    ends_of_others: list[Connection],
    answer: Callable[[int, Any], Any],
) -> None:
    """Answer requests, in a copy, until the pipe is closed."""
    import signal
    import traceback

    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the original, which stops its copies
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


def _close(pipes: list[Connection], processes: list[BaseProcess], at_once: bool = False) -> None:
    until = time.monotonic() + (0.0 if at_once else PATIENCE)
    try:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join(max(0.0, until - time.monotonic()))
    finally:  # also if Ctrl-C ends the waiting
        for process in processes:
            if process.is_alive():  # still busy
                process.kill()
        for process in processes:
            process.join()


_processes_on_the_cores = ContextVar("_processes_on_the_cores", default=1)


def processes_on_the_cores() -> int:
    """Return how many processes share the cores: inside of `in_processes` several, else 1."""
    return _processes_on_the_cores.get()


def in_processes(part: Callable[[int], Any], n: int) -> list[Any]:
    """Return [part(0), ..., part(n - 1)], all but the first computed in copies of this process.

    The copies live as long as this call. Each process has one BLAS thread, and workers="auto" is
    one worker in each. Raises what `Copies` raises; `CannotCopyError` before anything is computed.
    """
    before = _processes_on_the_cores.set(n)
    try:
        with ONE_BLAS_THREAD, Copies(n - 1, lambda k, _: part(k + 1)) as copies:
            for k in range(n - 1):
                copies.ask(k, None)
            first = part(0)
            return [first, *(copies.answer(k) for k in range(n - 1))]
    finally:
        _processes_on_the_cores.reset(before)
