"""A stream for messages that may be lost."""

from typing import Any, TextIO


class LossyStream:
    """Writes to a stream until that fails, and drops everything from then on.

    A log on a full disk, or a terminal that was closed, is no reason to lose a training.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.failed = False

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        self._try(self.stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Write what the stream still holds, or drop it."""
        self._try(self.stream.flush)

    def _try(self, act: Any, *arguments: str) -> None:
        if not self.failed:
            try:
                act(*arguments)
            except OSError:
                self.failed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
