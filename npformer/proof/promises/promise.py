"""A promise of a layer, whether it is kept, and the report of several."""

from __future__ import annotations

from dataclasses import dataclass, field

LONGEST_LINE = 120
"""Of an error of other people's code, as messages quote it."""


class PromiseError(AssertionError):
    """A layer does not keep what dropout, a mask or an evaluation promises: see `report`."""

    def __init__(self, report: PromiseReport) -> None:
        super().__init__(f"\n{report}")
        self.report = report


@dataclass(frozen=True)
class Promise:
    """What a layer should do, whether it does, and what was seen.

    `is_kept` is None where it could not be tried.
    """

    words: str
    is_kept: bool | None
    evidence: str = ""

    def __str__(self) -> str:
        verdict = {True: "kept", False: "BROKEN", None: "not tried"}[self.is_kept]
        return f"{verdict:<9}  {self.words}" + (f": {self.evidence}" if self.evidence else "")


@dataclass(frozen=True)
class PromiseReport:
    """What dropoutcheck, maskcheck or evaluationcheck found. Print it for a line of each promise.

    Attributes
    ----------
    check : str
        The function that made the report.
    title : str
        The name of what was checked.
    promises : list of Promise
        What was tried, and what came of it.
    notes : list of str
        What else is worth knowing.
    """

    check: str
    title: str
    promises: list[Promise]
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether no promise is broken."""
        return not self.broken_promises

    @property
    def broken_promises(self) -> list[Promise]:
        """The promises that are broken."""
        return [promise for promise in self.promises if promise.is_kept is False]

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        lines = [f"{self.check} of {self.title}: {verdict}"]
        lines += [f"  {promise}" for promise in self.promises]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def raise_if_broken(self) -> PromiseReport:
        """Return the report; raise PromiseError if a promise is broken."""
        if not self.passed:
            raise PromiseError(self)
        return self


def shorten(error: Exception) -> str:
    """Return the first line of an error, and not too much of it."""
    line = f"{type(error).__name__}: {error}".splitlines()[0]
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."
