"""Threads that compute side by side: the samples of a batch, or the rows of one call.

NumPy releases the interpreter's lock while it computes, so threads of one process do where calls
are long. Each has one BLAS thread: a product that several share leaves BLAS's own threads looking
for more work, for some hundredths of a second, on cores that others need.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from npformer.blas import ONE_BLAS_THREAD

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Part = TypeVar("Part")
Result = TypeVar("Result")

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def side_by_side(do: Callable[[Part], Result], parts: list[Part]) -> list[Result]:
    """Return [do(part), ...], each computed in a thread of its own.

    Parameters
    ----------
    do : callable
        What it raises reaches the caller, once no thread is at work any more.
    parts : list
    """
    pool = threads(len(parts))
    with ONE_BLAS_THREAD:
        # The context is the caller's: what it told NumPy to do about overflow holds there as well.
        futures = [pool.submit(copy_context().run, do, part) for part in parts]
        try:
            return [future.result() for future in futures]
        finally:  # nobody may still write when an error reaches the caller
            for future in futures:
                future.exception()


def slices(n_rows: int, n: int) -> list[slice]:
    """Return n slices that are all rows together; fewer, but at least one, if rows are fewer."""
    n = max(1, min(n, n_rows))
    return [slice(k * n_rows // n, (k + 1) * n_rows // n) for k in range(n)]


def threads(n: int) -> ThreadPoolExecutor:
    """Return n threads that stay for the next call: starting them costs as much as a small step."""
    with _pools_lock:
        if n not in _pools:
            from concurrent.futures import ThreadPoolExecutor  # here, not above: it brings logging

            _pools[n] = ThreadPoolExecutor(
                n, thread_name_prefix="npformer", initializer=_spread, initargs=(count(), n)
            )
        return _pools[n]


def _spread(numbers: Iterator[int], n: int) -> None:
    """Give this thread every n-th core of those that the process may use.

    Threads that wait for each other in turn, as threads of one interpreter do, are woken on one
    core by Linux again and again, and then run one after another.
    """
    if hasattr(os, "sched_setaffinity"):
        ours = sorted(os.sched_getaffinity(0))
        if len(ours) >= n:
            os.sched_setaffinity(0, ours[next(numbers) % n :: n])  # 0: this thread alone


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # a forked child has no threads but its own
