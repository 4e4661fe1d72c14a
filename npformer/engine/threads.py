"""Threads that compute side by side: parts of a batch, or parts of one call.

NumPy releases the interpreter's lock while it computes, so threads run in parallel if their calls
are long. Meanwhile BLAS has one thread: after a product, BLAS's own threads would wait busily for
some hundredths of a second, on cores that these threads need.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from npformer.engine.blas import ONE_BLAS_THREAD

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Part = TypeVar("Part")
Result = TypeVar("Result")

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()
_refused: set[int] = set()
"""Numbers of threads that could not be started: a Python without threads, or a limit."""


class _InPool(threading.local):
    """Whether this thread belongs to a pool."""

    yes = False


_in_pool = _InPool()


def side_by_side(
    compute: Callable[[Part], Result], parts: list[Part], threads: int | None = None
) -> list[Result]:
    """Return [compute(part), ...], each part in a thread of its own, or in `threads` threads.

    An error reaches the caller once all threads have finished. A thread of a pool computes the
    parts itself, one after another, because it could wait forever for the other threads; so does
    the caller if the system starts no threads, or if there is one part. The results are the same.
    """
    if _in_pool.yes or len(parts) == 1:
        return [compute(part) for part in parts]
    pool = _pool_or_none(threads or len(parts))
    with ONE_BLAS_THREAD:
        if pool is None:
            return [compute(part) for part in parts]
        # In a copy of the caller's context, which includes NumPy's error settings.
        futures: list[Future[Result]] = []
        try:
            for part in parts:
                futures.append(pool.submit(copy_context().run, _run_in_pool, compute, part))
            return [future.result() for future in futures]
        finally:  # no thread may still be writing when an error reaches the caller
            for future in futures:
                future.exception()


def _run_in_pool(compute: Callable[[Part], Result], part: Part) -> Result:
    _in_pool.yes = True  # for good: a thread never leaves its pool
    return compute(part)


def slices(n: int, n_parts: int) -> list[slice]:
    """Return `n_parts` slices that together are range(n); fewer if some would be empty."""
    n_parts = max(1, min(n_parts, n))
    return [slice(k * n // n_parts, (k + 1) * n // n_parts) for k in range(n_parts)]


def thread_pool(n: int) -> ThreadPoolExecutor:
    """Return n threads, which later calls use again: starting them takes as long as a small step.

    Raises RuntimeError, and leaves no thread behind, if the system does not start them all.
    """
    with _pools_lock:
        if n not in _pools:
            _pools[n] = _start_pool(n)
        return _pools[n]


def _pool_or_none(n: int) -> ThreadPoolExecutor | None:
    if n in _refused:
        return None
    try:
        return thread_pool(n)
    except RuntimeError:
        _refused.add(n)
        return None


def _start_pool(n: int) -> ThreadPoolExecutor:
    """Return a pool whose threads have all been started.

    Otherwise a task whose thread cannot be started would stay in the pool and run later.
    """
    from concurrent.futures import ThreadPoolExecutor  # imports logging: slow

    pool = ThreadPoolExecutor(
        n, thread_name_prefix="npformer", initializer=_choose_cores, initargs=(count(), n)
    )
    all_running = threading.Barrier(n)  # while a thread waits here, the pool starts the next one
    try:
        for _ in range(n):
            pool.submit(all_running.wait)
    except BaseException:
        all_running.abort()
        pool.shutdown()
        raise
    return pool


def _choose_cores(numbers: Iterator[int], n: int) -> None:
    """Give this thread every n-th core of those that the process may use.

    Threads of one interpreter keep waiting for each other. Linux tends to wake such threads on the
    same core, where they run one after another.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= n:
            with suppress(OSError):  # the process may have lost a core meanwhile
                os.sched_setaffinity(0, cores[next(numbers) % n :: n])  # 0: this thread alone


def _reset_after_fork() -> None:
    """Forget pools and lock in a forked child: it has no copies of the threads behind them."""
    global _pools_lock
    _pools_lock = threading.Lock()
    _pools.clear()
    _in_pool.yes = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def in_workers(
    compute: Callable[[int], Result], n: int, alone: AbstractContextManager[Any]
) -> list[Result]:
    """Return [compute(0), ..., compute(n - 1)], in threads; a single one in a context, here."""
    if n > 1:
        return side_by_side(compute, list(range(n)))
    with alone:
        return [compute(0)]
