"""Copies of this process that compute alongside it.

A thread needs the interpreter's lock between two calls of NumPy. If calls are short, waiting for it
takes a third of the time. A copy of the whole process has a lock of its own. It takes hundredths of
a second to make and begins with everything that this process has. Later changes reach it only as
messages, or through arrays from `shared_array`.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from npformer.engine.blas import ONE_BLAS_THREAD
from npformer.engine.copied_process import serve

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

PATIENCE = 1.0
"""Seconds that all copies together may take to end by themselves."""

TIMEOUT = 60.0
"""Seconds that a copy may do nothing while this process waits for its answer."""

TIMEOUT_VARIABLE = "NPFORMER_WORKER_TIMEOUT"
"""Environment variable: other seconds, or "inf"."""


class CannotCopyError(OSError):
    """The system makes no more processes: there are too many, or too little memory."""


class CopyDiedError(RuntimeError):
    """A copy of this process ended in the middle of its work, or was ended because it hung."""


def possible(asked_for: bool = False) -> bool:
    """Return whether this process may be copied.

    Only on Linux: macOS's own libraries do not survive it. Only from the main thread: others are
    not copied, and a lock that one holds stays locked in the copy. In a process that
    `multiprocessing` or a pool made, only on request: those are parallel enough.
    """
    if sys.platform != "linux" or not hasattr(os, "fork"):
        return False
    if threading.current_thread() is not threading.main_thread():
        return False
    try:
        for name in ("_multiprocessing", "mmap", "multiprocessing.connection"):
            import_module(name)  # some builds of Python lack one
    except ImportError:
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
    import mmap

    dtype = np.dtype(dtype)
    try:
        memory = mmap.mmap(-1, max(size * dtype.itemsize, 1))  # anonymous, shared with copies
    except OSError as error:
        raise CannotCopyError(
            f"there is no memory to share with copies ({error}); processes=False computes in "
            "threads"
        ) from error
    return np.frombuffer(memory, dtype, size)


class Copies:
    """Copies of this process, each of which answers requests until it is told to stop.

    Copy k, counted from 0, calls ``answer(k, request)`` and sends back what that returns or raises;
    both ways by pickle. Copies end with this process at the latest, and with the body of a ``with``
    statement: at once if it raised. Raises `CannotCopyError` if the system makes no more processes,
    and ValueError if ``NPFORMER_WORKER_TIMEOUT`` is not a number of seconds.
    """

    def __init__(self, n: int, answer: Callable[[int, Any], Any]) -> None:
        import multiprocessing.util

        fork = multiprocessing.get_context("fork")
        self._timeout = timeout()
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        try:
            for k in range(n):
                here, there = _pipe(self._timeout)
                self._pipes.append(here)
                # No signal may reach the copy before it has decided which ones are meant for it.
                mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                try:
                    process = fork.Process(
                        target=serve,
                        args=(k, there, list(self._pipes), answer, os.getpid(), mask),
                        name=f"npformer-{k}",
                        daemon=True,
                    )
                    with warnings.catch_warnings():
                        # Python 3.12 warns that other threads are not copied. See `possible`.
                        warnings.simplefilter("ignore", DeprecationWarning)
                        process.start()
                    self._processes.append(process)
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
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
        # At exit, multiprocessing runs its finalizers before it waits for its processes. Weakref's
        # might come later, and the wait would never end, because the copies ignore SIGTERM.
        self._closing = multiprocessing.util.Finalize(
            self, _close, args=(self._pipes, self._processes), exitpriority=0
        )

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
        except BlockingIOError as error:  # the pipe is full, and the copy does not read
            raise self._hung(k) from error
        except OSError as error:
            raise self._death(k) from error

    def answer(self, k: int) -> Any:
        """Return copy k's answer, or raise what it raised, or `CopyDiedError` if it has ended.

        A copy that hangs raises it, too: it uses no processor time at all for as long as `timeout`
        says. Work that is slow, or has to wait for a core, does use some.
        """
        pipe, process = self._pipes[k], self._processes[k]
        patience = min(self._timeout / 4, 1.0)
        idle, before = 0.0, None
        try:
            while not pipe.poll(patience):  # not by a clock: Ctrl-Z stops both processes
                used = _processor_time(process.pid)
                idle = idle + patience if used is not None and used == before else 0.0
                before = used
                if idle >= self._timeout:
                    raise self._hung(k)
            result, error = pipe.recv()
        except BlockingIOError as late:  # it was stopped in the middle of an answer
            raise self._hung(k) from late
        except (EOFError, OSError) as lost:
            raise self._death(k) from lost
        if error is not None:
            raise error
        return result

    def close(self, at_once: bool = False) -> None:
        """Stop all copies: at once, or within `PATIENCE` seconds, in which they may finish."""
        if self._closing.still_active():
            self._closing.cancel()
            _close(self._pipes, self._processes, at_once)

    def _hung(self, k: int) -> CopyDiedError:
        process = self._processes[k]
        process.kill()  # even if it is stopped
        return CopyDiedError(
            f"worker process {k + 1} of {len(self)} (pid {process.pid}) has used no processor time "
            f"for {self._timeout:g} seconds, and was ended. Something has stopped it (SIGSTOP), or "
            "it waits for a lock that a thread held when it was made: processes=False computes in "
            f"threads. If it has a reason to wait, set {TIMEOUT_VARIABLE} to more seconds in the "
            "environment"
        )

    def _death(self, k: int) -> CopyDiedError:
        process = self._processes[k]
        process.join(PATIENCE)
        return CopyDiedError(
            f"worker process {k + 1} of {len(self)} ended in the middle of its work (exit code "
            f"{process.exitcode}; -9 is how the system ends it when memory runs out). A smaller "
            "batch_size takes less memory, in training also micro_batch; processes=False computes "
            "in threads"
        )


def timeout() -> float:
    """Return how many seconds a copy may do nothing, as set in the environment."""
    text = os.environ.get(TIMEOUT_VARIABLE)
    if not text:
        return TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0.0:
        raise ValueError(
            f"{TIMEOUT_VARIABLE} is {text!r}; expected seconds above 0, such as 300, or inf. Unset "
            f"it in the environment for the default, {TIMEOUT:g}"
        )
    return seconds


def _pipe(seconds: float) -> tuple[Connection, Connection]:
    """Return both ends of a pipe; the first one raises BlockingIOError if it waits for too long.

    This is for waits within a message; for the first byte of an answer, `Copies.answer` waits.
    """
    import socket
    from multiprocessing.connection import Connection

    here, there = socket.socketpair()
    for end in (here, there):
        end.setblocking(True)  # even if socket.setdefaulttimeout says otherwise
    whole = min(seconds, 1e9)
    interval = struct.pack("ll", int(whole), int(whole % 1 * 1e6))
    for direction in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        here.setsockopt(socket.SOL_SOCKET, direction, interval)
    return Connection(here.detach()), Connection(there.detach())


def _processor_time(pid: int | None) -> int | None:
    """Return how long a process has computed, in nanoseconds; None if the system does not say."""
    try:
        return None if pid is None else time.clock_gettime_ns((~pid << 3) | 2)  # its clock's number
    except OSError:
        return None


def _close(pipes: list[Connection], processes: list[BaseProcess], at_once: bool = False) -> None:
    until = time.monotonic() + (0.0 if at_once else PATIENCE)
    try:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join(max(0.0, until - time.monotonic()))
    finally:  # even if Ctrl-C ends the waiting
        for process in processes:
            if process.is_alive():  # still busy
                process.kill()
        for process in processes:
            process.join()


_processes_on_the_cores = ContextVar("_processes_on_the_cores", default=1)


def processes_on_the_cores() -> int:
    """Return how many processes share the cores: several inside `in_processes`, else 1."""
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
