"""What marking has in common: trials of a function, mistakes, slopes, and gradcheck's verdict."""

import copy
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from npformer.core import Array, a_type
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise
from npformer.proof.central_difference import central_difference
from npformer.proof.report import GradcheckReport

EPS = 1e-5

COUNTS = {
    "labels": "the number of rows with a label",
    "d_head": "d_head",
    "root": "sqrt(d_head)",
    "batch": "the batch size",
    "length": "the length",
    "kernel": "the kernel's size",
}
"""What may explain a constant factor, as a phrase, unless it is "the number of" something."""


class Trial:
    """Arguments of a function, and what to call them.

    `label` completes "right for ...". `counts` are the sizes that may explain a constant factor.
    """

    def __init__(self, label: str, *inputs: Any, **counts: float) -> None:
        self.label, self.inputs = label, inputs
        self.counts = {COUNTS.get(name, f"the number of {name}"): n for name, n in counts.items()}


def check_trials(trials: Iterable[Trial], check: Callable[[Trial], None]) -> None:
    """Raise what is wrong with the first trial that fails; say for which others all is right."""
    right_for: list[str] = []
    for trial in trials:
        try:
            check(trial)
        except Stuck as stuck:
            if not right_for:
                raise
            beside = f"right for {', and '.join(right_for)}; but for {trial.label}:"
            raise Stuck(beside, *stuck.args) from stuck
        right_for.append(trial.label)


def mistaken_results(
    mistakes: Iterable[tuple[str, types.SimpleNamespace]],
    compute: Callable[[types.SimpleNamespace], Any],
) -> list[tuple[str, Any]]:
    """Return what each mistake says, and what is computed with it."""
    results = []
    for says, names in mistakes:
        try:
            with np.errstate(all="ignore"):
                results.append((says, compute(names)))
        except Exception:  # a mistake that does not run here explains nothing
            continue
    return results


def faults(
    exercise: Exercise, got: Any, compute: Callable[..., Any], ones: Any = None, **more: Any
) -> dict[str, str]:
    """Return what is wrong with each result, or "", beside those of the solution and of mistakes.

    `compute` returns the results of a solution; `ones` are the right ones for a dy of ones.
    """
    right = dict(zip(exercise.returns, compute(exercise.run(exercise.solved)), strict=True))
    mistakes = mistaken_results(exercise.variants(), compute)
    faults_by_name = {}
    for i, (name, expected) in enumerate(right.items()):
        more["variants"] = [(says, results[i]) for says, results in mistakes]
        more["others"] = {other: g for other, g in right.items() if not same(g, expected)}
        more["of_ones"] = ones and ones[i]
        faults_by_name[name] = fault_of(name, got[i], expected, truth=exercise.truth, **more)
    return faults_by_name


def tuple_of(found: Any, names: list[str]) -> tuple[Any, ...]:
    """Return what a function with these results returned: if several, it is a tuple already."""
    return found if len(names) > 1 else (found,)


def check_returned(name: str, found: Any, expected: list[str]) -> None:
    """Check that a function returned as many results as expected: if several, a tuple of them."""
    names, n = ", ".join(expected), len(expected)
    if found is None:
        says = f"nothing; expected {names}. Is a `return` missing?"
    elif n == 1 and isinstance(found, tuple | list):
        says = f"a {type(found).__name__}; expected one array, {names}"
    elif n > 1 and not isinstance(found, tuple):
        kind = "one array" if isinstance(found, np.ndarray) else a_type(found)
        says = f"{kind}; expected a tuple: {names}, in this order"
    elif n > 1 and len(found) != n:
        says = f"{len(found)} results; expected {n}: {names}, in this order"
    else:
        return
    raise Stuck(f"{name} returned {says}")


def slopes(compute: Callable[[], Array], array: Array, dy: Array) -> Array:
    """Return central differences of the sum of dy times a result, for each entry of an array."""
    y, gradient = compute(), np.zeros_like(array)
    for at in np.ndindex(array.shape):
        u = np.zeros_like(array)
        u[at] = 1.0
        gradient[at] = central_difference(compute, array, u, dy, y=y, h=EPS).central
    return gradient


def report_of_failure(
    answer: Answer, thing: Any, *inputs: Any, **options: Any
) -> GradcheckReport | None:
    """Return gradcheck's report on what a reader wrote; None if it finds nothing."""
    from npformer.learn.museum.probes import report_of  # when needed

    report: GradcheckReport = answer.call(report_of, thing, *copy.deepcopy(inputs), **options)
    return None if report.passed else report


def pass_gradcheck(
    answer: Answer, when: str, beside: str, thing: Any, *inputs: Any, **options: Any
) -> None:
    """Let gradcheck have the last word: raise Stuck if it finds something."""
    if (report := report_of_failure(answer, thing, *inputs, **options)) is not None:
        error = f"a relative error of {report.error:.1e}{beside}"
        raise Stuck(*(f"gradcheck{when}: {says}" for says in report.broken_rules or [error]))
