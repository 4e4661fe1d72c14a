"""How much memory a step has taken so far, and for what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Use:
    """Memory that is in use."""

    n_bytes: int
    layer: str
    """The layer that asked for it."""
    keeper: str = ""
    """The layer whose backward pass reads it."""
    name: str = ""
    """What the code of the keeper calls it."""
    function: str = ""
    """The function that has this name for it."""


def nowhere() -> tuple[str, str]:
    """Return no pass and no layer."""
    return "", ""


@dataclass(eq=False)
class Ledger:
    """The memory that one worker takes.

    Attributes
    ----------
    n_bytes, peak : int
        Bytes now, and the most so far. What a workspace has once asked for counts until the end.
    moment : (str, str)
        The pass and the layer at the peak.
    place : callable
        Returns the pass and the layer that run now.
    """

    n_bytes: int = 0
    peak: int = 0
    moment: tuple[str, str] = ("", "")
    place: Callable[[], tuple[str, str]] = nowhere
    uses: dict[int, Use] = field(default_factory=dict)

    def add(self, n_bytes: int) -> Use:
        """Count memory that is taken now."""
        use = self.use(n_bytes)
        self.grow(n_bytes)
        return use

    def use(self, n_bytes: int) -> Use:
        """Record what memory is used for, without counting it."""
        use = Use(n_bytes, self.place()[1])
        self.uses[id(use)] = use
        return use

    def grow(self, n_bytes: int) -> None:
        """Count more bytes."""
        self.n_bytes += n_bytes
        if self.n_bytes > self.peak:
            self.peak = self.n_bytes
            self.moment = self.place()

    def forget(self, use: Use) -> None:
        """End a use, whose memory stays with a workspace."""
        self.uses.pop(id(use), None)

    def remove(self, use: Use) -> None:
        """Take memory off that has been freed."""
        self.forget(use)
        self.n_bytes -= use.n_bytes
