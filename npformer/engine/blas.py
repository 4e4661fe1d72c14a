"""BLAS with one thread, where the cores are shared out by npformer: two who do so only collide."""

from __future__ import annotations

import threading
from typing import Any


class OneBlasThread:
    """Holds BLAS to one thread while anyone is inside; the limit is the process's, so they count.

    ::

        with ONE_BLAS_THREAD:
            ...

    Whoever enters first sets it and whoever leaves last puts back what was there before. Without
    the count, two threads that overlap would each restore what the other had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._libraries: Any = None
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                if self._libraries is None:  # looks through what is loaded: once is enough
                    from threadpoolctl import ThreadpoolController

                    found = ThreadpoolController().select(user_api="blas")
                    self._libraries = found.lib_controllers
                # What `limit` does, in a third of its time: it asks for all that it could tell.
                self._before = [library.num_threads for library in self._libraries]
                for library in self._libraries:
                    library.set_num_threads(1)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._free()  # whoever entered first may have been another thread
                for library, number in zip(self._libraries, self._before, strict=True):
                    library.set_num_threads(number)
                self._free()

    def stay(self) -> None:
        """Stay inside for good, in a copy of the process that was made inside.

        BLAS is not called: whatever it is told after a fork, OpenBLAS starts threads first, which
        look for work for some hundredths of a second on cores that others need.
        """
        self._lock = threading.Lock()  # nobody is left who could open the other
        self._inside += 1

    def _free(self) -> None:
        """Let any thread set limits: from 3.8 on, threadpoolctl listens to the first one alone."""
        for library in self._libraries:
            clear = getattr(library, "clear_controlling_thread", None)
            if clear is not None:
                clear(force=True)


ONE_BLAS_THREAD = OneBlasThread()
