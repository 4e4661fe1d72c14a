"""Copies of this process that compute beside it.

Threads of one interpreter take turns: each gives the lock away while NumPy computes, and has to
wait for it between two calls. Where calls are short, the waiting is a third of the time. A copy of
the whole process has a lock of its own. It begins with everything that this one has, at the cost
of some milliseconds, and sees nothing of what changes here afterwards but what it is sent, and
arrays from `shared_array`.
"""

from __future__ import annotations

import gc
import mmap
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

PATIENCE = 1.0
"""Seconds that a process may take to end by itself."""


def possible() -> bool:
    """Whether this process may be copied, and whoever calls would not be surprised by it.

    On Linux alone: macOS's own libraries do not survive it. From the main thread alone: other
    threads are not copied, and what they hold locked would stay so. And not from a process that
    somebody else's pool made, which is parallel enough.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return False
    import multiprocessing

    return not multiprocessing.current_process().daemon


def shared_array(size: int, dtype: Any) -> np.ndarray:
    """Return a vector of zeros that this process and its later copies all see and write to.

    Parameters
    ----------
    size : int
    dtype : dtype
    """
    dtype = np.dtype(dtype)
    memory = mmap.mmap(-1, max(size * dtype.itemsize, 1))  # anonymous, shared with copies
    return np.frombuffer(memory, dtype, size)


class Copies:
    """Copies of this process, each of which answers requests until it is told to stop.

    Parameters
    ----------
    n : int
    begin : callable
        ``begin()`` is called once in each copy.
    answer : callable
        ``answer(k, request)`` is called in copy k, from 0; whatever it returns or raises comes
        back. Requests and answers are pickled.

    Raises
    ------
    OSError
        The system makes no more processes.

    Notes
    -----
    They end with this process: a copy whose pipe is closed stops, and Ctrl-C is for the original.
    """

    def __init__(
        self, n: int, begin: Callable[[], None], answer: Callable[[int, Any], Any]
    ) -> None:
        import multiprocessing

        fork = multiprocessing.get_context("fork")
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        try:
            for k in range(n):
                ours, theirs = fork.Pipe()
                self._pipes.append(ours)
                process = fork.Process(
                    target=_serve,
                    args=(k, theirs, list(self._pipes), begin, answer),
                    name=f"npformer-{k}",
                    daemon=True,  # stopped if this process ends in an orderly way without `close`
                )
                with warnings.catch_warnings():
                    # From Python 3.12 on: other threads are not copied. `possible` is about that.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                self._processes.append(process)
                theirs.close()
        except BaseException:
            _close(self._pipes, self._processes)
            raise
        self._closing = weakref.finalize(self, _close, self._pipes, self._processes)

    def __len__(self) -> int:
        return len(self._pipes)

    def ask(self, k: int, request: Any) -> None:
        """Send a request to copy k, which begins to work on it.

        Parameters
        ----------
        k : int
        request : object
            Can be pickled.

        Raises
        ------
        RuntimeError
            The copy is no more.
        """
        try:
            self._pipes[k].send(request)
        except OSError as error:
            raise self._died(k) from error

    def answer(self, k: int) -> Any:
        """Return the answer of copy k to the request before, or raise what it raised.

        Raises
        ------
        RuntimeError
            The copy is no more.
        """
        try:
            result, error = self._pipes[k].recv()
        except (EOFError, OSError) as lost:
            raise self._died(k) from lost
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Stop all copies."""
        self._closing()

    def _died(self, k: int) -> RuntimeError:
        process = self._processes[k]
        process.join(PATIENCE)
        return RuntimeError(
            f"worker process {k + 1} of {len(self)} ended in the middle of its work (exit code "
            f"{process.exitcode}; -9 is what the system does when memory runs out). A smaller "
            "batch_size or micro_batch takes less memory; processes=False computes in threads"
        )


def _serve(
    k: int,
    pipe: Connection,
    not_ours: list[Connection],
    begin: Callable[[], None],
    answer: Callable[[int, Any], Any],
) -> None:
    """Answer requests, in a copy, until the pipe is closed."""
    import signal
    import traceback

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever began this decides what Ctrl-C means
    for other in not_ours:  # as long as a copy holds the other end of a pipe, it never closes
        other.close()
    gc.freeze()  # what was made before is not this process's to clean up
    begin()
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        try:
            reply: tuple[Any, BaseException | None] = (answer(k, request), None)
        except Exception as error:
            error.add_note(f"In a worker process:\n{traceback.format_exc()}")
            reply = (None, error)
        try:
            pipe.send(reply)
        except BrokenPipeError:
            return
        except Exception as unsendable:
            text = f"an answer could not be sent ({unsendable}): {reply[1] or type(reply[0])}"
            pipe.send((None, RuntimeError(text)))


def _close(pipes: list[Connection], processes: list[BaseProcess]) -> None:
    for pipe in pipes:
        pipe.close()
    for process in processes:
        process.join(PATIENCE)
        if process.is_alive():  # in the middle of something long
            process.kill()
            process.join()
