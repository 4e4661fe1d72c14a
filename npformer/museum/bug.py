"""What is known of a bug: what it is, where it belongs, and who catches it."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from npformer.classifier import SequenceClassifier
from npformer.museum.probes import WIDTH, draw, small
from npformer.proof.gradcheck import GradcheckError, GradcheckReport, gradcheck

REFEREES = ("differences", "complex step", "protocol")
"""How `gradcheck` may notice a bug: by two ways to a derivative, or by a rule of the protocol."""


class Source:
    """A source file with a bug in it, for bugs that are no layer and no function.

    Attributes
    ----------
    path : str
        Where it would lie.
    text : str
        What it holds.
    mended : str
        What it should hold.
    """

    path: str
    text: str
    mended: str

    @classmethod
    def wrong(cls) -> dict[str, str]:
        """Return ``{path: text}``."""
        return {cls.path: cls.text}

    @classmethod
    def right(cls) -> dict[str, str]:
        """Return ``{path: mended}``."""
        return {cls.path: cls.mended}


@dataclass(frozen=True)
class Bug:
    """One bug.

    Attributes
    ----------
    number : int
        One number may have several bugs. Those up to `SEEN` were seen in published code.
    wrong : class or function
        What is wrong, with the bug's description as its docstring. Of a pair, its forward function.
    of : str
        What it is a wrong version of, by its dotted name below npformer; the path of a source file.
    build : callable
        () -> the wrong thing: a layer in float64, a pair (forward, backward), a class, or, of a
        `Source`, ``{path: text}``.
    right : callable
        () -> the right thing, of the same kind.
    caught_by : tuple of str
        Names of all that catch it: of `REFEREES`, and of the invariants that are named for it.
    inputs : tuple
        For ``gradcheck(build(), *inputs, **options)``; empty if there is nothing to differentiate.
    options : mapping
        Of gradcheck; for a model too.
    config : mapping
        How the configuration of a model differs from the usual small one.
    place : callable or None
        ``place(model, thing)`` puts the wrong thing, or the right one, into a model in the place of
        its own; None for what has no place in a model.
    measure : callable or None
        ``measure(bug)`` -> what it costs, in words and numbers.
    """

    number: int
    wrong: Any
    of: str
    build: Callable[[], Any]
    right: Callable[[], Any]
    caught_by: tuple[str, ...]
    inputs: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    place: Callable[[SequenceClassifier, Any], None] | None = None
    measure: Callable[[Bug], str] | None = None

    @property
    def name(self) -> str:
        """Of the wrong class or function."""
        return str(self.wrong.__name__)

    @property
    def title(self) -> str:
        """What is wrong, in one sentence."""
        return self.doc.partition("\n")[0]

    @property
    def doc(self) -> str:
        """The whole description."""
        return inspect.getdoc(self.wrong) or ""

    def told(self, label: str) -> str:
        """Return what the description says behind a label, in one line.

        Parameters
        ----------
        label : {"Who", "Why", "Cost", "Caught"}
        """
        found = re.search(rf"^{label}: (.*?)(\n\n|\Z)", self.doc, re.MULTILINE | re.DOTALL)
        return "" if found is None else " ".join(found[1].split())

    @property
    def code(self) -> str:
        """The wrong lines, without their docstrings; of a pair both functions, if both are here."""
        if isinstance(self.wrong, type) and issubclass(self.wrong, Source):
            return self.wrong.text
        back = getattr(sys.modules[self.wrong.__module__], f"{self.name}_backward", None)
        both = [
            self.wrong,
            *([back] if getattr(back, "__module__", "") == self.wrong.__module__ else []),
        ]
        return "\n\n".join(map(_without_docstrings, both))

    def report(self, thing: Any = None) -> GradcheckReport | None:
        """Return what gradcheck says of the bug by itself; None where there is no derivative.

        Parameters
        ----------
        thing : any
            In its place.
        """
        if not self.inputs:
            return None
        return _report(self.build() if thing is None else thing, *self.inputs, **self.options)

    def model(self, thing: Any = None) -> SequenceClassifier:
        """Return a model in float64 with the bug in it, its parameters away from where they began.

        Parameters
        ----------
        thing : any
            What to put into it instead. Its parameters are the model's from then on.

        Raises
        ------
        TypeError
            It has no place in a model.
        """
        if self.place is None:
            raise TypeError(f"{self.name} has no place in a model")
        config = small(**{"n_layers": 2, **self.config})
        model = SequenceClassifier(config, 3, n_features=WIDTH, dtype="float64")
        self.place(model, self.build() if thing is None else thing)
        for i, array in enumerate(model.parameters().values()):
            array += 0.3 * draw(*array.shape, seed=i)  # a fresh gamma is 1, a fresh bias 0
        return model

    def report_of_model(self, x: Any, thing: Any = None) -> GradcheckReport:
        """Return what gradcheck says of a model with the bug in it.

        Parameters
        ----------
        x : array, shape (batch, length, 8)
        thing : any
            What to put into it instead.
        """
        return _report(self.model(thing), x, max_entries=4, directions=2, **self.options)


def referees(report: GradcheckReport | None) -> set[str]:
    """Return which of `REFEREES` found something wrong.

    Parameters
    ----------
    report : GradcheckReport or None
    """
    if report is None:
        return set()
    exact = [t.complex_error for t in report.tensors if t.complex_error is not None]
    tolerance = report.complex_tolerance or float("inf")
    noticed = {
        "differences": not all(t.error <= report.tolerance for t in report.tensors),
        "complex step": not all(error <= tolerance for error in exact),
        "protocol": bool(report.broken_rules),
    }
    return {name for name, wrong in noticed.items() if wrong}


def _report(target: Any, *inputs: Any, **options: Any) -> GradcheckReport:
    try:
        return gradcheck(target, *inputs, **options)
    except GradcheckError as error:
        return error.report


def _without_docstrings(item: Any) -> str:
    lines = textwrap.dedent(inspect.getsource(item)).splitlines()
    dropped: set[int] = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            end = node.body[0].end_lineno or 0
            blank = end < len(lines) and not lines[end].strip()
            dropped |= set(range(node.body[0].lineno, end + 1 + blank))
    return "\n".join(line for i, line in enumerate(lines, start=1) if i not in dropped)
