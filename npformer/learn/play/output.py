"""Output that nobody may read: what does not fit into a pipe is dropped, and nothing waits."""

import io
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 512
"""Bytes that go into a pipe at once, or not at all, on every system."""


class DroppingStream(io.TextIOBase):
    """Writes to an open file as much as that takes at once, and drops the rest."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Return the number of the open file."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write a text, or what there is room for."""
        words = text.encode("utf-8", "backslashreplace")
        with suppress(OSError):  # full, or closed
            for start in range(0, len(words), CHUNK):
                if not select.select([], [self._descriptor], [], 0)[1]:
                    break
                os.write(self._descriptor, words[start : start + CHUNK])
        return len(text)


@contextmanager
def output_that_never_waits() -> Iterator[None]:
    """Keep this process from waiting for whoever reads standard output and standard error."""
    with _never_waiting("stdout"), _never_waiting("stderr"):
        yield


@contextmanager
def _never_waiting(name: str) -> Iterator[None]:
    stream = getattr(sys, name)
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError):  # no stream, or one of Python's alone
        descriptor = None
    if descriptor is None or os.name != "posix":
        yield
        return
    before = os.dup(descriptor)
    with suppress(OSError):  # a full pipe, or a system without /proc
        _open_without_waiting(descriptor)
        stream.flush()
    setattr(sys, name, DroppingStream(descriptor))
    try:
        yield
    finally:
        setattr(sys, name, stream)
        os.dup2(before, descriptor)
        os.close(before)


def _open_without_waiting(descriptor: int) -> None:
    """Open the pipe or terminal anew for this process and its children.

    To change the file that is open would change it for other programs, such as the shell.
    """
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode) or os.isatty(descriptor):
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
        opened = os.open(f"/proc/self/fd/{descriptor}", flags)
        os.dup2(opened, descriptor)
        os.close(opened)
