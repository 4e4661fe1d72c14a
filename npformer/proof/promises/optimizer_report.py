"""What optimcheck reports: which formula an optimizer follows, and where it leaves it."""

from __future__ import annotations

from dataclasses import dataclass, field

from npformer.proof.promises.runs import Difference

TOLERANCE = 1e-6


class OptimcheckError(AssertionError):
    """An optimizer or a schedule does not follow its formula: see `report`."""

    def __init__(self, report: OptimcheckReport) -> None:
        super().__init__(f"\n{report}")
        self.report = report


@dataclass(frozen=True)
class OptimcheckReport:
    """What optimcheck or schedulecheck found. Print it for a table of all runs.

    Attributes
    ----------
    title : str
        The name of what was checked.
    formula : str
        The formula that it is compared with.
    passed : bool
        Whether it follows that formula, in one of its published forms.
    diagnosis : str
        What it is, in words: "Adam", or "Adam: its root is taken twice".
    called : str
        How it was called.
    settings : dict of str to float
        The learning rate, betas and epsilon that the formula was given.
    differences : list of Difference
        For each run the first difference from the formula.
    notes : list of str
        What else is worth knowing.
    tolerance : float
        The largest relative error that passes.
    check : str
        The function that made the report.
    compared : str
        What was compared: the "change" of a parameter in a step, or the "value" of a schedule.
    """

    title: str
    formula: str
    passed: bool
    diagnosis: str
    called: str
    settings: dict[str, float]
    differences: list[Difference]
    notes: list[str] = field(default_factory=list)
    tolerance: float = TOLERANCE
    check: str = "optimcheck"
    compared: str = "change"

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        settings = ", ".join(f"{name} {value:g}" for name, value in self.settings.items())
        lines = [
            f"{self.check} of {self.title}: {verdict}, tolerance {self.tolerance:g}",
            f"  this is {self.diagnosis}",
            f"  formula: {self.formula}",
            f"  called as {self.called}",
        ]
        if settings:
            lines.append(f"  with {settings}")
        lines += self._table()
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        rows = [["run", "error", "at", self.compared, "formula", ""]]
        rows += [self._row(difference) for difference in self.differences]
        if len(rows) == 1:
            return []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]

    def _row(self, difference: Difference) -> list[str]:
        error = f"{difference.error:.1e}"
        if not difference.step:
            return [difference.course, error, "", "", "", ""]
        place = f"step {difference.step}"
        if difference.entry:
            place += f", parameter {difference.parameter}{list(difference.entry)}"
        wrong = "" if difference.error <= self.tolerance else "<-- wrong"
        change = f"{difference.change:.9g}"
        expected = f"{difference.expected:.9g}"
        return [difference.course, error, place, change, expected, wrong]
