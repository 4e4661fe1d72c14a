"""Threads that compute in parallel: parts of a batch, or parts of one call.

NumPy releases the interpreter's lock while it computes, so threads run in parallel if their calls
are long. Meanwhile BLAS has one thread: after a product, BLAS's own threads would wait busily for
some hundredths of a second, on cores that these threads need.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar

from npformer.core.support.worker_threads import Task, WorkerThreads
from npformer.engine.blas import OneBlasThread

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_pools: dict[int, WorkerThreads] = {}
_pools_lock = threading.RLock()  # reentrant: a signal's handler may predict while it is held
_refused: set[int] = set()
"""Numbers of threads that could not be started: a Python without threads, or a limit."""


class _ThisThread(threading.local):
    """Facts about the running thread."""

    is_in_pool = False
    cores: frozenset[int] = frozenset()
    """All cores that the thread may use."""
    first_cores: frozenset[int] = frozenset()
    """The cores on which the thread begins a task; if empty, the system chooses."""


_this_thread = _ThisThread()


def side_by_side(
    compute: Callable[[Argument], Result], arguments: list[Argument], threads: int | None = None
) -> list[Result]:
    """Return [compute(argument), ...]: each call in a separate thread, or all in `threads` threads.

    An error reaches the caller once all threads have finished. A thread of a pool makes the calls
    itself, one after another, because it could wait forever for the other threads; so does the
    caller if the system starts no threads, or for a single argument. The results are the same.
    """
    if _this_thread.is_in_pool or len(arguments) == 1:
        return [compute(argument) for argument in arguments]
    pool = _pool_or_none(threads or len(arguments))
    with OneBlasThread():
        if pool is None:
            return [compute(argument) for argument in arguments]
        # In a copy of the caller's context, which includes NumPy's error settings.
        tasks = [Task(copy_context().run, _run_in_pool, compute, item) for item in arguments]
        try:
            for task in tasks:
                pool.submit(task)
            return [task.result() for task in tasks]
        finally:  # no thread may still be writing when an error reaches the caller
            for task in tasks:
                task.end()


@contextmanager
def one_after_another() -> Iterator[None]:
    """Let this thread make the calls of `side_by_side` itself, in their order."""
    was_in_pool = _this_thread.is_in_pool
    _this_thread.is_in_pool = True
    try:
        yield
    finally:
        _this_thread.is_in_pool = was_in_pool


def _run_in_pool(compute: Callable[[Argument], Result], argument: Argument) -> Result:
    _move_to_first_cores()
    return compute(argument)


def _move_to_first_cores() -> None:
    """Let this thread begin on a core on which no other thread of its pool begins.

    Threads of one interpreter keep waiting for each other. Linux tends to wake such threads on the
    same core, where they may run one after another for seconds. Afterwards the thread may use all
    cores again, because threads, processes and a BLAS that it starts or loads inherit its limits.
    """
    if _this_thread.first_cores:
        with suppress(OSError):  # the process may have lost a core meanwhile
            os.sched_setaffinity(0, _this_thread.first_cores)  # 0: this thread alone
            os.sched_setaffinity(0, _this_thread.cores)


def slices(n: int, n_parts: int) -> list[slice]:
    """Return `n_parts` slices that together are range(n); fewer if some would be empty."""
    n_parts = max(1, min(n_parts, n))
    return [slice(k * n // n_parts, (k + 1) * n // n_parts) for k in range(n_parts)]


def thread_pool(n: int) -> WorkerThreads:
    """Return a pool of n threads, which is reused: starting it takes as long as a small step.

    Raises RuntimeError, and leaves no thread behind, if the system does not start all threads.
    """
    with _pools_lock:
        if n not in _pools:
            _pools[n] = WorkerThreads(n, "npformer", prepare=lambda number: _join_pool(number, n))
        return _pools[n]


def _pool_or_none(n: int) -> WorkerThreads | None:
    if n in _refused:
        return None
    try:
        return thread_pool(n)
    except RuntimeError:
        _refused.add(n)
        return None


def _join_pool(number: int, n: int) -> None:
    """Record in a thread that it belongs to a pool of n, and on which cores it begins tasks.

    These are every n-th core of those that the process may use.
    """
    _this_thread.is_in_pool = True
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= n:
            _this_thread.cores = frozenset(cores)
            _this_thread.first_cores = frozenset(cores[number::n])


def _reset_after_fork() -> None:
    """Forget pools and lock in a forked child, which has no copies of their threads."""
    global _pools_lock
    _pools_lock = threading.RLock()
    _pools.clear()
    _this_thread.is_in_pool = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def run_in_workers(
    compute: Callable[[int], Result], n: int, blas_limit: AbstractContextManager[Any]
) -> list[Result]:
    """Return [compute(0), ..., compute(n - 1)], in threads.

    A single call is made in this thread, with `blas_limit` entered.
    """
    if n > 1:
        return side_by_side(compute, list(range(n)))
    with blas_limit:
        return [compute(0)]
