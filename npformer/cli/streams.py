"""Standard streams that are closed, full, or cannot encode what is printed."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from npformer.core.support.lossy_stream import LossyStream


@contextmanager
def usable_streams() -> Iterator[None]:
    """Keep commands inside the ``with`` statement from failing because of what they print.

    A closed stream (`>&-`) is the null device: otherwise the next file that is opened, perhaps a
    model, would have the stream's number, and hold what some library prints. A character that
    standard output cannot encode is printed as its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: the stream's
            setattr(sys, name, open(null, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    with keep_writes_from_failing("stderr"):
        try:
            yield
        finally:
            try:
                sys.stdout.flush()
            except OSError:  # the command has reported it, if it mattered
                drop(sys.stdout)


@contextmanager
def keep_writes_from_failing(name: str) -> Iterator[None]:
    """Keep writes to sys.stdout or sys.stderr, whichever is named, from failing."""
    stream: TextIO = getattr(sys, name)
    wrapped = LossyStream(stream)
    setattr(sys, name, wrapped)
    try:
        yield
    finally:
        wrapped.flush()
        setattr(sys, name, stream)
        if wrapped.failed:
            drop(stream)


def drop(stream: TextIO) -> None:
    """Drop what a stream still holds, which Python would try to write once more at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
