"""A change of the whole process that lasts as long as somebody needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Before = TypeVar("Before")


class SharedChange(Generic[Before]):
    """A change that the first who enters makes, and the last who leaves takes back.

    If each took back what it had found, two threads that overlap would leave the change for good.

    Parameters
    ----------
    make : callable
        Makes the change; returns what was before.
    take_back : callable
        ``take_back(before)`` restores that.
    """

    def __init__(self, make: Callable[[], Before], take_back: Callable[[Before], object]) -> None:
        self._make = make
        self._take_back = take_back
        self._befores: list[Before] = []  # one, while somebody is inside
        self._n_inside = 0
        self._lock = threading.RLock()  # a signal's handler may enter while it is held

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Make the change for a body."""
        with self._lock:
            if self._n_inside == 0:
                self._befores.append(self._make())
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    self._take_back(self._befores.pop())
