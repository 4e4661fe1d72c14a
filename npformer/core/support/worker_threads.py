"""Threads that wait for tasks, and go on when the main thread has reached its end.

`concurrent.futures` takes no task any more once the main thread has ended, although a training in
another thread may go on for hours.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Task(Generic[Result]):
    """A call for another thread, which runs once, or not at all if it is ended before it begins.

    Parameters
    ----------
    function : callable
    *arguments
        What it is called with.
    """

    def __init__(self, function: Callable[..., Result], *arguments: object) -> None:
        self._function = function
        self._arguments = arguments
        self._claim = threading.Lock()  # held by the thread that runs the task, or that ends it
        self._unfinished = threading.Lock()  # released when the task has run
        self._unfinished.acquire()
        self._result: Result | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Call the function, unless the task has run or was ended."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            self._result = self._function(*self._arguments)
        except BaseException as error:
            self._error = error
        finally:
            self._unfinished.release()

    def end(self) -> None:
        """Return when the function is not running: never again, if it has not begun."""
        if not self._claim.acquire(blocking=False):
            self._wait()

    def result(self) -> Result:
        """Return what the function returned, or raise its error; ask for it once."""
        self._wait()
        error, self._error = self._error, None  # an error that refers to itself would keep arrays
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self._result  # type: ignore[return-value]

    def _wait(self) -> None:
        with self._unfinished:
            pass


class WorkerThreads:
    """Threads that run tasks in the order in which they are submitted.

    They end with this object, or with the process, which does not wait for them.

    Parameters
    ----------
    n : int
        How many.
    name : str
        What their names begin with.
    prepare : callable, optional
        ``prepare(number)`` is called in each thread before its first task; numbers begin at 0.

    Raises
    ------
    RuntimeError
        The system does not start all of them; those that were started end.
    """

    def __init__(self, n: int, name: str, prepare: Callable[[int], None] | None = None) -> None:
        self._n = n
        self._process = os.getpid()
        self._tasks: SimpleQueue[Task[Any] | None] = SimpleQueue()
        try:
            for number in range(n):
                thread = threading.Thread(
                    target=_work,
                    args=(self._tasks, number, prepare),
                    name=f"{name}_{number}",
                    daemon=True,
                )
                thread.start()
        except BaseException:
            self.close()
            raise

    def submit(self, task: Task[Result]) -> Task[Result]:
        """Let a thread run a task when it is free; return the task."""
        self._tasks.put(task)
        return task

    def are_here(self) -> bool:
        """Return whether this process has the threads: a forked child has none of its parent's."""
        return self._process == os.getpid()

    def close(self) -> None:
        """Let the threads end after the tasks that were submitted."""
        for _ in range(self._n):
            self._tasks.put(None)

    def __del__(self) -> None:
        self.close()


def _work(
    tasks: SimpleQueue[Task[Any] | None], number: int, prepare: Callable[[int], None] | None
) -> None:
    if prepare is not None:
        prepare(number)
    while True:
        task = tasks.get()
        if task is None:
            return
        task.run()
        del task  # while this thread waits, it holds no arrays
