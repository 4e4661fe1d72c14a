"""Copies of this process that compute beside it.

Threads of one interpreter take turns: each gives the lock away while NumPy computes, and has to
wait for it between two calls. Where calls are short, the waiting is a third of the time. A copy of
the whole process has a lock of its own. It begins with everything that this one has, at the cost
of hundredths of a second, and sees nothing of what changes here afterwards but what it is sent, and
arrays from `shared_array`.
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
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

PATIENCE = 1.0
"""Seconds that copies may take to end by themselves, all together."""


class CannotCopyError(OSError):
    """The system makes no more processes: their number, or memory, is at its limit."""


class CopyDiedError(RuntimeError):
    """A copy of this process ended in the middle of its work."""


def possible(asked_for: bool = False) -> bool:
    """Whether this process may be copied.

    On Linux alone: macOS's own libraries do not survive it. From the main thread alone: other
    threads are not copied, and what they hold locked at that moment stays so in the copy.

    Parameters
    ----------
    asked_for : bool
        False: not from a process that another one made by `multiprocessing` or a pool, either:
        that is parallel enough. True: from one that may have children.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return False
    import multiprocessing

    if asked_for:
        return not multiprocessing.current_process().daemon
    return multiprocessing.parent_process() is None


refused = False
"""Whether the system has refused to make a copy. Who does not have to have one asks no more: each
attempt leaves files open, which Python forgets to close."""


def shared_array(size: int, dtype: Any) -> np.ndarray:
    """Return a vector of zeros that this process and its later copies all see and write to.

    Parameters
    ----------
    size : int
    dtype : dtype

    Raises
    ------
    CannotCopyError
        The system has no memory for it.
    """
    dtype = np.dtype(dtype)
    try:
        memory = mmap.mmap(-1, max(size * dtype.itemsize, 1))  # anonymous, shared with copies
    except OSError as error:
        raise CannotCopyError(f"there is no memory that copies could share ({error})") from error
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
    CannotCopyError
        The system makes no more processes.

    Notes
    -----
    They end with this process: a copy whose pipe is closed stops, and Ctrl-C is for the original.
    In a ``with`` statement they end with its body: at once if that raised.
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
        """Send a request to copy k, which begins to work on it.

        Parameters
        ----------
        k : int
        request : object
            Can be pickled.

        Raises
        ------
        CopyDiedError
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
        CopyDiedError
            The copy is no more.
        """
        try:
            result, error = self._pipes[k].recv()
        except (EOFError, OSError) as lost:
            raise self._died(k) from lost
        if error is not None:
            raise error
        return result

    def close(self, at_once: bool = False) -> None:
        """Stop all copies.

        Parameters
        ----------
        at_once : bool
            Whether to end what they do in the middle; otherwise they have `PATIENCE` seconds.
        """
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
        except (EOFError, ConnectionError):  # closed, or gone with an answer that nobody has read
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
    """Return an error that arrives as what it is, or else one that says what it was.

    An exception whose arguments are not those of its class is sent, and cannot be made again.
    """
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        said = RuntimeError(f"{type(error).__name__}: {error}")
        for note in error.__notes__:
            said.add_note(note)
        return said
    return error


def _close(pipes: list[Connection], processes: list[BaseProcess], at_once: bool = False) -> None:
    until = time.monotonic() + (0.0 if at_once else PATIENCE)
    try:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join(max(0.0, until - time.monotonic()))
    finally:  # also where Ctrl-C ends the waiting
        for process in processes:
            if process.is_alive():  # in the middle of something long
                process.kill()
        for process in processes:
            process.join()
