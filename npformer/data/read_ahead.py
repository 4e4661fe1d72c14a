"""ReadAhead: a thread reads the next samples while the model computes with the present ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np

from npformer.core.support.worker_threads import Task, WorkerThreads
from npformer.models.batch import Batch

Read = Callable[[Any], Batch]
"""Reads rows: a slice, or an array of row numbers."""

SLOW_READ = 0.002
"""Seconds. If a read takes at least as long, a thread does the next one. Files in the cache of the
system are read faster; then a thread would only take a core from the computation."""


class ReadAhead:
    """Reads samples from files, one read at a time; expected samples are read in advance."""

    def __init__(self) -> None:
        self._seconds = 0.0  # of the latest read
        self._thread: WorkerThreads | None = None  # ends with this object
        self._expected: tuple[Read, np.ndarray, Task[Batch]] | None = None

    def get(self, read: Read, rows: Any) -> Batch:
        """Return ``read(rows)``, from the thread if `expect` has begun that read."""
        expected, self._expected = self._expected, None
        if self._thread is not None and not self._thread.are_here():
            self._thread, expected = None, None
        if expected is not None:
            expected_read, expected_rows, task = expected
            if expected_read == read and np.array_equal(expected_rows, rows):
                return task.result()
            task.end()
        return self._measure_read(read, rows)

    def expect(self, read: Read, next_rows: Callable[[], np.ndarray]) -> None:
        """Begin to read the rows that `get` will need next, if the latest read took long.

        `next_rows` returns them; it is called only then, because it may take time itself.
        """
        if self._seconds < SLOW_READ:
            return
        if self._thread is None or not self._thread.are_here():
            self._thread = WorkerThreads(1, "npformer-reader")
        rows = next_rows()
        # In a copy of the caller's context, which includes NumPy's error settings.
        task = Task(copy_context().run, self._measure_read, read, rows)
        self._expected = read, rows, task
        self._thread.submit(task)

    def _measure_read(self, read: Read, rows: Any) -> Batch:
        """Return ``read(rows)``, and remember how long it took."""
        began = time.perf_counter()
        batch = read(rows)
        self._seconds = time.perf_counter() - began
        return batch
