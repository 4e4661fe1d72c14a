"""A run of an optimizer over a course, and how far it is from an update rule."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from npformer.proof.promises.courses import Arrays, Course
from npformer.proof.promises.kinds import Variant
from npformer.proof.promises.promise import shorten
from npformer.proof.promises.setting_names import SETTINGS_OF_KIND, numbers_of, pick_settings
from npformer.proof.promises.steppers import ArgumentStepper, Stepper
from npformer.proof.promises.update_rules import Settings

ROUNDINGS = 32.0
"""How many roundings of a parameter a step may be away from its formula."""


@dataclass
class Run:
    """What an optimizer did in a course: the parameters after each step, and its settings."""

    course: Course
    parameters: list[Arrays] = field(default_factory=list)
    numbers_before: list[dict[str, float]] = field(default_factory=list)
    numbers_after: list[dict[str, float]] = field(default_factory=list)
    error: str = ""
    """What was raised, if a step raised."""
    float32: bool = False
    """Whether it holds or returned parameters in float32."""

    def moves(self) -> bool:
        """Return whether any parameter changed."""
        starts = self.course.parameters
        return any(
            not np.array_equal(x, start, equal_nan=True)
            for arrays in self.parameters
            for x, start in zip(arrays, starts, strict=True)
        )

    def missing_settings(self, kind: str, stated: dict[str, float]) -> list[str]:
        """Return which settings of a kind were found under no name."""
        known = {**pick_settings(self.numbers_after[-1], kind), **stated}
        return [name for name in SETTINGS_OF_KIND[kind] if name not in known]

    def settings(
        self, kind: str, stated: dict[str, float], when: str, guess: dict[str, float]
    ) -> list[Settings] | None:
        """Return the settings of each step as they were "before" or "after" it; None without lr.

        What was found under no name is taken from `guess`.
        """
        series = self.numbers_before if when == "before" else self.numbers_after
        all_settings = []
        for numbers in series:
            values = {**guess, **pick_settings(numbers, kind), **stated}
            if "lr" not in values:
                return None
            all_settings.append(Settings(**values))
        return all_settings


def run(stepper: Stepper, course: Course) -> Run:
    """Run an optimizer over a course; an exception ends the run, and is told."""
    result = Run(course)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            stepper.start(course.parameters)
            for gradients in course.gradients:
                result.numbers_before.append(_numbers(stepper))
                arrays = stepper.step(gradients)
                result.numbers_after.append(_numbers(stepper))
                result.float32 |= any(x.dtype == np.float32 for x in arrays)
                result.parameters.append([np.asarray(x, dtype=np.float64) for x in arrays])
        except Exception as error:  # of a user's code
            result.error = shorten(error)
    return result


def _numbers(stepper: Stepper) -> dict[str, float]:
    """Return the numbers that say how an optimizer updates; the most certain source counts."""
    method = getattr(stepper.optimizer, stepper.method, None) if stepper.method else None
    sources: list[Any] = [method, stepper.optimizer]
    if isinstance(stepper, ArgumentStepper):
        sources += [s for states in stepper.states.values() for s in states.values()]
    numbers: dict[str, float] = {}
    for source in sources:
        if source is not None and (not isinstance(source, np.ndarray)):
            numbers.update(numbers_of(source))
    if inspect.isclass(stepper.optimizer):
        return numbers
    numbers.update(stepper.passed_settings)
    return numbers


def is_impossible(variant: Variant, course: Course) -> bool:
    """Return whether a rule cannot follow a course: it shares moments of different shapes."""
    shapes = {array.shape for array in course.parameters}
    return variant.rule.moments == "shared" and len(shapes) > 1


def follow(variant: Variant, course: Course, settings: list[Settings]) -> list[Arrays]:
    """Return the parameters after each step of an update rule."""
    rule = variant.rule
    arrays = [x.copy() for x in course.parameters]
    states: list[dict[str, Any]] = [{} for _ in arrays]
    if rule.moments == "shared":
        states = [states[0]] * len(arrays)
    after_steps = []
    calls = 0
    with np.errstate(all="ignore"):
        for step, gradients in enumerate(course.gradients[: len(settings)], start=1):
            for i, gradient in enumerate(gradients):
                calls += 1
                t = calls if rule.counter == "calls" else step
                arrays[i] = rule.update(arrays[i], gradient, states[i], t, settings[step - 1])
            after_steps.append(list(arrays))
    return after_steps


@dataclass(frozen=True)
class Difference:
    """The largest relative difference between steps and those of a rule, and where it is."""

    course: str
    error: float
    step: int
    parameter: int
    entry: tuple[int, ...]
    change: float
    """What that step added to that entry."""
    expected: float


def compare(result: Run, expected: list[Arrays], tolerance: float) -> Difference:
    """Return the first difference above the tolerance, or the largest one below it."""
    largest = Difference(result.course.name, 0.0, 0, 0, (), 0.0, 0.0)
    before = expected_before = result.course.parameters
    for step, (arrays, new) in enumerate(zip(result.parameters, expected, strict=False), start=1):
        for i, (array, expected_array) in enumerate(zip(arrays, new, strict=True)):
            difference = _compare_changes(
                array - before[i],
                expected_array - expected_before[i],
                _size_of_rounding(array, before[i], result.float32),
            )
            difference = replace(difference, course=result.course.name, step=step, parameter=i)
            if not difference.error <= largest.error:
                largest = difference
        if not largest.error <= tolerance:
            return largest
        before, expected_before = arrays, new
    return largest


def _size_of_rounding(array: np.ndarray, before: np.ndarray, float32: bool) -> float:
    """Return what rounding may change in a parameter of this size."""
    eps = float(np.finfo(np.float32 if float32 else np.float64).eps)
    sizes = np.maximum(np.abs(array), np.abs(before))
    return ROUNDINGS * eps * float(np.nan_to_num(sizes, posinf=0.0).max(initial=0.0))


def _compare_changes(change: np.ndarray, expected: np.ndarray, rounding: float) -> Difference:
    """Return the largest difference between two changes of one parameter."""
    if change.shape != expected.shape:
        return Difference("", float("inf"), 0, 0, (), float("nan"), float("nan"))
    with np.errstate(all="ignore"):
        apart = np.maximum(np.abs(change - expected) - rounding, 0.0)
        both_undefined = ~np.isfinite(change) & ~np.isfinite(expected)
        apart = np.where(both_undefined, 0.0, np.nan_to_num(apart, nan=np.inf))
        scale = np.abs(np.where(np.isfinite(expected), expected, 0.0)).max(initial=0.0)
        errors = np.where(apart > 0.0, apart / np.maximum(scale, 1e-300), 0.0)
    entry = np.unravel_index(int(np.argmax(errors)), errors.shape) if errors.size else ()
    index = tuple(int(i) for i in entry)
    return Difference(
        course="",
        error=float(errors.max(initial=0.0)),
        step=0,
        parameter=0,
        entry=index,
        change=float(change[index]) if errors.size else 0.0,
        expected=float(expected[index]) if errors.size else 0.0,
    )


def ratio_of_changes(result: Run, expected: list[Arrays]) -> float | None:
    """Return by how much the first step is longer than a rule's; None if not by one number."""
    before = result.course.parameters
    changes = [new - old for new, old in zip(result.parameters[0], before, strict=True)]
    expected_changes = [new - old for new, old in zip(expected[0], before, strict=True)]
    with np.errstate(all="ignore"):
        ratios = np.concatenate(
            [(c / e).ravel() for c, e in zip(changes, expected_changes, strict=True)]
        )
    ratio = float(np.median(ratios))
    is_one_number = np.isfinite(ratio) and ratio != 0.0 and np.allclose(ratios, ratio, rtol=1e-4)
    return ratio if is_one_number else None
