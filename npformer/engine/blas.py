"""How BLAS is held to one thread while npformer shares out the cores itself."""

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

BLAS_SECONDS = 0.012
"""A batch that costs at least this much gains from several BLAS threads, if one worker has it."""


class OneBlasThread:
    """Holds BLAS to one thread inside a ``with`` statement.

    The limit holds for the whole process, and several threads may be inside at the same time: the
    first one to enter sets the limit, and the last one to leave restores the old number.

    A copy of the process that is made inside keeps the limit, because it never leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._libraries: Any = None
        self._limited: list[tuple[Any, int]] = []  # libraries, and their own number of threads
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                if self._libraries is None:  # the search through all loaded libraries is slow
                    from threadpoolctl import ThreadpoolController

                    blas = ThreadpoolController().select(user_api="blas")
                    self._libraries = blas.lib_controllers
                # threadpoolctl's own `limit` does the same, and takes three times as long.
                found = [(library, library.num_threads) for library in self._libraries]
                self._limited = [each for each in found if each[1] != 1]
                for library, _ in self._limited:
                    library.set_num_threads(1)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._release_control()  # it may belong to another thread, which entered first
                for library, number in self._limited:
                    library.set_num_threads(number)
                self._release_control()

    def _renew_lock(self) -> None:
        """Make a new lock in a forked child, where a thread that held the old one is missing."""
        self._lock = threading.Lock()

    def _release_control(self) -> None:
        """Let any thread set limits: from 3.8 on, threadpoolctl obeys only the first that did."""
        for library, _ in self._limited:
            release = getattr(library, "clear_controlling_thread", None)
            if release is not None:
                release(force=True)


ONE_BLAS_THREAD = OneBlasThread()


def one_blas_thread(backend: str, seconds: float, threads: int) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread for a batch that costs `seconds`, unless more threads would help.

    A product of two small matrices is over before a second thread has woken up, and on a busy
    machine the first one then waits for it. `threads` that share a call fill the cores themselves.
    """
    if backend != "numpy" or (seconds >= BLAS_SECONDS and threads == 1):
        return nullcontext()
    return ONE_BLAS_THREAD
