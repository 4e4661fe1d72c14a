"""What gradcheck reports: the error of every tensor, broken rules, the fast twin."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np

from npformer.proof.entries import Entries
from npformer.proof.twincheck import TwinReport

TOLERANCE = 1e-6
COMPLEX_TOLERANCE = 1e-10

MOST_LINES = 3
"""Up to this many tensors with the same kind of error have a line each."""


class GradcheckError(AssertionError):
    """A backward pass is not the derivative of its forward pass: see `report`."""

    def __init__(self, report: GradcheckReport) -> None:
        super().__init__(f"\n{report}")
        self.report = report


@dataclass(frozen=True)
class TensorReport:
    """What was found for one input or parameter.

    An error is the largest difference between the backward pass and central differences (or the
    complex step), divided by the largest derivative in this tensor. Some gradients are exactly 0,
    such as that of attention's key bias, so the divisor is at least a thousandth of the largest
    gradient of all tensors, and at least 1e-4 of the largest output.

    At a corner the slopes on the two sides differ. The backward pass may return any value between
    them.
    """

    name: str
    shape: tuple[int, ...]
    checked: str  # "all 12 entries" or "8 directions"
    error: float
    where: tuple[int, ...] | None  # the entry with that error
    analytic: float  # its value from the backward pass
    numeric: float  # and from the differences
    no_derivative: int  # number of entries at corners
    largest: float  # the largest derivative that was compared: 0 if nothing was
    complex_error: float | None = None  # None where the complex step does not apply
    kind: str = ""  # of error, such as "transposed"; "" if the gradient is right or has no such
    pattern: str = ""  # the same as a clause, such as "backward is 3 times the derivative"
    entries: Entries | None = field(default=None, repr=False, compare=False)  # None: it has none

    def passes(self, tolerance: float, complex_tolerance: float | None) -> bool:
        """Whether differences and complex step agree with the backward pass; NaN never does."""
        exact = self.complex_error
        return self.error <= tolerance and (
            exact is None or complex_tolerance is None or exact <= complex_tolerance
        )


def wrong_among(
    tensors: Iterable[TensorReport], tolerance: float, complex_tolerance: float | None
) -> list[TensorReport]:
    """Return the reports of the tensors whose gradient is wrong."""
    return [tensor for tensor in tensors if not tensor.passes(tolerance, complex_tolerance)]


COLUMNS: dict[str, Callable[[TensorReport], str]] = {
    "tensor": lambda t: t.name,
    "shape": lambda t: str(t.shape),
    "checked": lambda t: t.checked,
    "error": lambda t: f"{t.error:.1e}",
    "complex step": lambda t: "-" if t.complex_error is None else f"{t.complex_error:.1e}",
    "at": lambda t: "" if t.where is None else str(list(t.where)),
    "backward": lambda t: f"{t.analytic:.9g}",
    "difference": lambda t: f"{t.numeric:.9g}",
}
"""Of a printed report."""


@dataclass(frozen=True)
class GradcheckReport:
    """What gradcheck found. Print it for a table of all tensors."""

    title: str  # what was checked
    tensors: list[TensorReport]
    broken_rules: list[str]  # of the protocol
    tolerance: float = TOLERANCE  # the largest error that passes
    complex_tolerance: float | None = COMPLEX_TOLERANCE  # None: the complex step was skipped
    not_analytic: str = ""  # why there is no complex step; "" if there is one
    twins: tuple[TwinReport, ...] = ()  # of the fast twin, in each dtype; empty without a twin
    notes: tuple[str, ...] = ()  # what was not compared, or cannot be judged by these values
    protocol: tuple[str, ...] = ()  # what a foreign object does besides; no reason to fail
    derivative_alone: bool = False  # whether nothing else decides, as for foreign objects

    @property
    def error(self) -> float:
        """The largest relative error of all tensors; NaN if any of them is NaN."""
        return float(np.max([tensor.error for tensor in self.tensors], initial=0.0))

    @property
    def complex_error(self) -> float | None:
        """The largest relative error against the complex step; None if it applies to no tensor."""
        errors = [t.complex_error for t in self.tensors if t.complex_error is not None]
        return float(np.max(errors)) if errors else None

    @property
    def passed(self) -> bool:
        """Whether every error is within its tolerance and no rule was broken."""
        twins_right = all(twin.passed for twin in self.twins)
        return twins_right and not self.broken_rules and not self.wrong_tensors()

    @property
    def verdict(self) -> str:
        """Whether the check passed, in words."""
        if self.derivative_alone:
            return "the derivative is right" if self.passed else "the derivative is WRONG"
        return "passed" if self.passed else "FAILED"

    def wrong_tensors(self) -> list[TensorReport]:
        """Return the reports of the tensors whose gradient is wrong."""
        return wrong_among(self.tensors, self.tolerance, self.complex_tolerance)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one HTML file that shows what was compared, and return its path.

        For each tensor it shows the backward pass over the differences, the error of each entry, a
        map of the errors, the errors of central differences over the step, and the kind of error in
        words. It has no script and needs no other file.

        Parameters
        ----------
        path : str or path
        overwrite : bool
            Whether to replace an existing file.

        Raises
        ------
        FileExistsError
            The file exists, and `overwrite` is False.

        Notes
        -----
        The function is evaluated anew, at the values that were checked.
        """
        # This room knows of no page: the reports are above it, and are imported for this alone.
        pages = import_module("npformer.tasks.reports.gradients")
        written: Path = pages.write_gradients(self, path, overwrite=overwrite)
        return written

    def __str__(self) -> str:
        reason = "wrong" if self.derivative_alone else "rule broken"
        return "\n".join(
            [
                f"gradcheck of {self.title}: {self.verdict}, tolerance {self.tolerance:g}",
                *self._table(),
                *self._lines_of_patterns(),
                *([f"  no complex step: {self.not_analytic}"] if self.not_analytic else []),
                *(f"  {reason}: {rule}" for rule in self.broken_rules),
                *(f"  protocol: {observation}" for observation in self.protocol),
                *(f"  note: {note}" for note in self.notes),
                *map(self._line_of_twin, self.twins),
            ]
        )

    def _lines_of_patterns(self) -> list[str]:
        """Return a line for each tensor with a pattern, or one for many with the same."""
        names: dict[str, list[str]] = {}
        for tensor in self.tensors:
            if tensor.pattern:
                names.setdefault(tensor.pattern, []).append(tensor.name)
        lines = []
        for pattern, tensors in names.items():
            if len(tensors) > MOST_LINES:
                tensors = [f"{tensors[0]} and {len(tensors) - 1} others"]
            lines += [f"  {name}: {pattern}" for name in tensors]
        return lines

    def _table(self) -> list[str]:
        rows, wrong = [[*COLUMNS, ""]], self.wrong_tensors()
        for tensor in self.tensors:
            corners = f"{n} without a derivative" if (n := tensor.no_derivative) else ""
            notes = filter(None, ["<-- wrong" if tensor in wrong else "", corners])
            rows.append([*(write(tensor) for write in COLUMNS.values()), ", ".join(notes)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]

    def _line_of_twin(self, twin: TwinReport) -> str:
        line = f"  twin in {twin.dtype}: at most {twin.error:.1e} from the layer, in {twin.tensor}"
        if twin.passed:
            return line
        layer = "the layer is wrong, too" if self.wrong_tensors() else "the layer itself is right"
        return f"{line}; tolerance {twin.tolerance:g}  <-- the twin is wrong ({layer})"
