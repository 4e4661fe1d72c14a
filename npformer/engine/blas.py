"""Limit BLAS to one thread while npformer's own threads use the cores."""

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

BLAS_SECONDS = 0.012
"""A batch that costs at least this much gains from several BLAS threads, in a single worker."""


class BlasLimit:
    """The limit of this process: one BLAS thread as long as somebody holds the limit.

    The first holder sets the limit, and the last one to leave restores the numbers of threads.

    An interrupt, a signal handler or the garbage collector may stop or enter these methods between
    any two of their lines. Therefore the lock is reentrant, a method may start again where another
    call of it has stopped, and what an interrupt has cut off is repeated before the interrupt is
    raised again.

    Attributes
    ----------
    holders : dict of int to int
        The thread of each holder, by the holder's number.
    """

    def __init__(self) -> None:
        self.holders: dict[int, int] = {}
        self._lock = threading.RLock()
        self._libraries: Any = None
        self._numbers: list[tuple[Any, int]] | None = None  # of threads, before the limit
        self._is_set = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_other_threads)

    def add(self, holder: int) -> None:
        """Note a holder, and set the limit unless it is set."""
        self.holders[holder] = threading.get_ident()
        try:
            with self._lock:
                self._set()
        except BaseException:
            self.remove(holder)
            raise

    def remove(self, holder: int) -> None:
        """Forget a holder, and lift the limit if it was the last one."""
        try:
            self._remove(holder)
        except BaseException:
            self._remove(holder)
            raise

    def _remove(self, holder: int) -> None:
        with self._lock:
            self.holders.pop(holder, None)
            if not self.holders:
                self._lift()

    def _set(self) -> None:
        if self._libraries is None:  # the search through all loaded libraries is slow
            from threadpoolctl import ThreadpoolController

            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        if self._numbers is None:
            # threadpoolctl's own `limit` does the same, and takes three times as long.
            numbers = [(library, library.num_threads) for library in self._libraries]
            more_than_one = [(library, number) for library, number in numbers if number != 1]
            if self._numbers is None:  # a signal's handler has not done it meanwhile
                self._numbers = more_than_one
        if not self._is_set:
            for library, _ in self._numbers:
                library.set_num_threads(1)
            self._is_set = True

    def _lift(self) -> None:
        self._is_set = False
        numbers = self._numbers
        if numbers is None:
            return
        release_control(numbers)  # it may belong to another thread, which entered first
        for library, number in numbers:
            library.set_num_threads(number)
        release_control(numbers)
        self._numbers = None

    def _forget_other_threads(self) -> None:
        """Keep only the holders of this thread, the only one that a forked child has."""
        self._lock = threading.RLock()
        this_thread = threading.get_ident()
        for holder, thread in list(self.holders.items()):
            if thread != this_thread:
                del self.holders[holder]
        if not self.holders:
            self._lift()


def release_control(numbers: list[tuple[Any, int]]) -> None:
    """Let any thread set limits: from 3.8 on, threadpoolctl obeys only the first that did."""
    for library, _ in numbers:
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)


BLAS_LIMIT = BlasLimit()


class OneBlasThread:
    """Holds BLAS to one thread inside a ``with`` statement, in the whole process.

    Several threads may be inside at the same time.

    Notes
    -----
    If an interrupt comes at the moment in which the statement is left, `__exit__` may not run; then
    the hold ends with this object.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        BLAS_LIMIT.add(id(self))

    def __exit__(self, *exception: object) -> None:
        BLAS_LIMIT.remove(id(self))

    def __del__(self) -> None:
        if id(self) in BLAS_LIMIT.holders:
            BLAS_LIMIT.remove(id(self))


def one_blas_thread(backend: str, seconds: float, threads: int) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread for a batch that costs `seconds`, unless more threads would help.

    A product of two small matrices is over before a second thread has woken up, and on a busy
    machine the first one then waits for it. `threads` that share a call fill the cores themselves.
    """
    if backend != "numpy" or (seconds >= BLAS_SECONDS and threads == 1):
        return nullcontext()
    return OneBlasThread()
