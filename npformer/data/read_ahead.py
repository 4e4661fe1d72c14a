"""ReadAhead: a thread reads the next samples while the last ones are computed with."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np

from npformer.core.support.worker_threads import Task, WorkerThreads
from npformer.models.batch import Batch

Read = Callable[[Any], Batch]
"""Reads some rows: a slice, or an array of row numbers."""

WORTH = 0.002
"""Seconds of a read from which on a thread does the next one: files that lie in the memory of the
system are read faster, and then the thread would only take a core from those who compute."""


class ReadAhead:
    """Reads samples from files, one read at a time, and those that are expected beforehand."""

    def __init__(self) -> None:
        self._seconds = 0.0  # of the latest read
        self._thread: WorkerThreads | None = None  # ends with this object
        self._expected: tuple[Read, np.ndarray, Task[Batch]] | None = None

    def get(self, read: Read, rows: Any) -> Batch:
        """Return what `read` returns for some rows, or what it has returned to `expect`."""
        expected, self._expected = self._expected, None
        if self._thread is not None and not self._thread.are_here():
            self._thread, expected = None, None
        if expected is not None:
            its_read, its_rows, reading = expected
            if its_read == read and np.array_equal(its_rows, rows):
                return reading.result()
            reading.end()
        return self._timed_read(read, rows)

    def expect(self, read: Read, next_rows: Callable[[], np.ndarray]) -> None:
        """Begin to read rows that `get` will be asked for next, if the latest read took long.

        `next_rows` says which; it is not asked otherwise, for that may take time itself.
        """
        if self._seconds < WORTH:
            return
        if self._thread is None or not self._thread.are_here():
            self._thread = WorkerThreads(1, "npformer-reader")
        rows = next_rows()
        # In a copy of the caller's context, which includes NumPy's error settings.
        reading = Task(copy_context().run, self._timed_read, read, rows)
        self._expected = read, rows, reading
        self._thread.submit(reading)

    def _timed_read(self, read: Read, rows: Any) -> Batch:
        began = time.perf_counter()
        batch = read(rows)
        self._seconds = time.perf_counter() - began
        return batch
