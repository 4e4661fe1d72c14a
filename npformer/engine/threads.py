"""Threads that compute side by side: the samples of a batch, or the rows of one call.

NumPy releases the interpreter's lock while it computes, so threads of one process do where calls
are long. Each has one BLAS thread: a product that several share leaves BLAS's own threads looking
for more work, for some hundredths of a second, on cores that others need.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from npformer.engine.blas import ONE_BLAS_THREAD

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Part = TypeVar("Part")
Result = TypeVar("Result")

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


class _Inside(threading.local):
    """Whether this thread is one of a pool's."""

    threads = False


_inside = _Inside()


def side_by_side(do: Callable[[Part], Result], parts: list[Part]) -> list[Result]:
    """Return [do(part), ...], shared out among as many threads as there are parts.

    Parameters
    ----------
    do : callable
        What it raises reaches the caller, once no thread is at work any more. If it asks for
        threads itself, it gets none, and computes its parts one after another: those of the pool
        may all be waiting for it.
    parts : list
    """
    if _inside.threads:
        return [do(part) for part in parts]
    pool = threads(len(parts))
    with ONE_BLAS_THREAD:
        # The context is the caller's: what it told NumPy to do about overflow holds there as well.
        futures: list[Future[Result]] = []
        try:
            for part in parts:
                futures.append(pool.submit(copy_context().run, _in_thread, do, part))
            return [future.result() for future in futures]
        finally:  # nobody may still write when an error reaches the caller
            for future in futures:
                future.exception()


def _in_thread(do: Callable[[Part], Result], part: Part) -> Result:
    _inside.threads = True  # a thread of a pool is inside as long as it lives
    return do(part)


def slices(n: int, n_parts: int) -> list[slice]:
    """Return slices that are range(n) together: so many, but no empty ones beside others."""
    n_parts = max(1, min(n_parts, n))
    return [slice(k * n // n_parts, (k + 1) * n // n_parts) for k in range(n_parts)]


def threads(n: int) -> ThreadPoolExecutor:
    """Return n threads that stay for the next call: starting them costs as much as a small step.

    Raises
    ------
    RuntimeError
        The system starts no more threads. None is left.
    """
    with _pools_lock:
        if n not in _pools:
            _pools[n] = _started(n)
        return _pools[n]


def _started(n: int) -> ThreadPoolExecutor:
    """Return a pool whose threads are all there.

    A pool that cannot start a thread when it is given work keeps the work, and does it later.
    """
    from concurrent.futures import ThreadPoolExecutor  # here, not above: it brings logging

    pool = ThreadPoolExecutor(
        n, thread_name_prefix="npformer", initializer=_spread, initargs=(count(), n)
    )
    all_here = threading.Barrier(n)  # whoever waits is busy, so that the next one is started
    try:
        for _ in range(n):
            pool.submit(all_here.wait)
    except BaseException:
        all_here.abort()
        pool.shutdown()
        raise
    return pool


def _spread(numbers: Iterator[int], n: int) -> None:
    """Give this thread every n-th core of those that the process may use.

    Threads that wait for each other in turn, as threads of one interpreter do, are woken on one
    core by Linux again and again, and then run one after another.
    """
    if hasattr(os, "sched_setaffinity"):
        ours = sorted(os.sched_getaffinity(0))
        if len(ours) >= n:
            with suppress(OSError):  # cores may be taken away meanwhile
                os.sched_setaffinity(0, ours[next(numbers) % n :: n])  # 0: this thread alone


def _forget() -> None:
    """Begin anew in a forked child: it has no threads but its own, and nobody to open a lock."""
    global _pools_lock
    _pools_lock = threading.Lock()
    _pools.clear()
    _inside.threads = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
