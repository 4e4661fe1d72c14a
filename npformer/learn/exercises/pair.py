"""Marking a backward pass: its values, the rules of the protocol, and gradcheck."""

import copy
import inspect
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import a_type
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise
from npformer.proof.gradcheck import GradcheckError, gradcheck

Inputs = tuple[Any, ...]

ROUNDING, SINGLE = 1e-12, 1e-9
"""Relative errors: a formula in float64 has less than the first, central differences have less than
the second, and what is rounded to float32 has more."""


@dataclass(frozen=True)
class Trial:
    """Arguments of the forward pass, and what to call them."""

    label: str  # completes "right for ..."
    inputs: Inputs
    counts: Mapping[str, float] = field(default_factory=dict)  # what a constant factor may be


@dataclass(frozen=True)
class Pair:
    """How to mark a backward pass whose forward pass is given. Called, it returns what is wrong."""

    forward: str
    backward: str
    gradients: tuple[str, ...]  # what backward returns, in order: "dx", "dW"
    trials: tuple[Trial, ...]
    invariants: Callable[[Answer], list[str]] = lambda answer: []  # of the museum

    def __call__(self, exercise: Exercise, answer: Answer) -> list[str]:
        """Return what is wrong, in words; an empty list if all is right."""
        right_for: list[str] = []
        for trial in self.trials:
            try:
                problems = self._values(exercise, answer, trial) or self._rules(answer, trial)
            except Stuck as stuck:
                broke_off = isinstance(stuck.__cause__, Exception)
                problems = [f"{stuck} {self._shapes(exercise, trial)}" if broke_off else str(stuck)]
            if problems:
                return [_beside(right_for, trial.label), *problems] if right_for else problems
            right_for.append(trial.label)
        answer.quiet()
        if answer.differences:  # which are neither made for float32 nor exact enough for gradcheck
            return []
        return self._dtype(answer) or self._gradcheck(answer) or self.invariants(answer)

    def _values(self, exercise: Exercise, answer: Answer, trial: Trial) -> list[str]:
        """Compare values with those of the solution and of typical mistakes."""
        solved = exercise.run(exercise.solved)
        y, _ = getattr(solved, self.forward)(*copy.deepcopy(trial.inputs))
        dy = upstream(y)
        result = self._run(answer, trial.inputs, dy, y)
        if isinstance(result, str):
            return [result]
        right = self._of(solved, trial.inputs, dy)
        ones = self._of(solved, trial.inputs, np.ones_like(dy))
        variants = []
        for says, names in exercise.variants():
            try:
                variants.append((says, self._of(names, trial.inputs, dy)))
            except Exception:  # a mistake that does not run on this trial explains nothing
                continue
        problems = []
        for i, name in enumerate(self.gradients):
            problems.append(
                fault_of(
                    name,
                    result[i],
                    right[i],
                    variants=[(says, gradients[i]) for says, gradients in variants],
                    others={
                        other: right[j]
                        for j, other in enumerate(self.gradients)
                        if j != i and not same(right[j], right[i])
                    },
                    of_ones=ones[i],
                    counts=trial.counts,
                )
            )
        if not any(problems):
            return self._digits(answer, max(map(_error, result, right)))
        fine = [name for name, problem in zip(self.gradients, problems, strict=True) if not problem]
        problems = [problem for problem in problems if problem]
        if problems and fine:
            problems.append(f"right: {', '.join(fine)}")
        return problems

    def _digits(self, answer: Answer, error: float) -> list[str]:
        """Say if gradients were rounded to float32; note if they seem to be finite differences."""
        if answer.called(self.forward) > 2 * answer.called(self.backward):
            says = (
                f"{self.forward} is called over and over, to measure slopes; what is the formula?"
            )
            answer.differences = says
        elif error > ROUNDING:
            digits = f"right to {-math.log10(error):.0f} digits, where a formula gives 15"
            if error > SINGLE:
                return [f"{', '.join(self.gradients)}: {digits}. Is something rounded to float32?"]
            answer.differences = f"{digits}: differences, or a constant that is cut short?"
        return []

    def _shapes(self, exercise: Exercise, trial: Trial) -> str:
        """Return the shapes of a trial's arrays, in words."""
        solved = exercise.run(exercise.solved)
        forward, backward = getattr(solved, self.forward), getattr(solved, self.backward)
        named = dict(zip(inspect.signature(forward).parameters, trial.inputs, strict=False))
        given = {name: x.shape for name, x in named.items() if isinstance(x, np.ndarray)}
        y, _ = forward(*copy.deepcopy(trial.inputs))
        shapes = given | {next(iter(inspect.signature(backward).parameters)): np.shape(y)}
        return f"[{', '.join(f'{name} {shape}' for name, shape in shapes.items())}]"

    def _run(self, answer: Answer, inputs: Inputs, dy: Any, y: Any) -> Any:
        """Return the reader's gradients for dy, or what is wrong with the call, in words."""
        forward, backward = (answer.function(name) for name in (self.forward, self.backward))
        try:
            own, cache = answer.call(forward, *copy.deepcopy(inputs))
        except (TypeError, ValueError):
            raise Stuck(f"{self.forward} no longer returns (y, cache)") from None
        if not same(own, y):
            raise Stuck(
                f"{self.forward} gives other numbers than the one you were given; put it back. "
                f"`npformer exercises start DIR {self.backward} --force` writes the file anew"
            )
        result = answer.call(backward, np.array(dy), cache)
        return self._complaint(result) or (result if len(self.gradients) > 1 else (result,))

    def _complaint(self, result: Any) -> str:
        """Return what is wrong with the number of gradients, or ""."""
        wanted = ", ".join(self.gradients)
        if result is None:
            return f"{self.backward} returned nothing; expected {wanted}. Is a `return` missing?"
        if len(self.gradients) == 1:
            if isinstance(result, tuple | list):
                kind = type(result).__name__
                return f"{self.backward} returned a {kind}; expected one array, {wanted}"
            return ""
        if not isinstance(result, tuple):
            kind = "one array" if isinstance(result, np.ndarray) else a_type(result)
            return f"{self.backward} returned {kind}; expected a tuple: {wanted}, in this order"
        if len(result) != len(self.gradients):
            return (
                f"{self.backward} returned {len(result)} gradients; expected "
                f"{len(self.gradients)}: {wanted}, in this order"
            )
        return ""

    def _of(self, names: types.SimpleNamespace, inputs: Inputs, dy: Any) -> tuple[Any, ...]:
        """Return the gradients that a solved file, or a mistake, gives."""
        _, cache = getattr(names, self.forward)(*copy.deepcopy(inputs))
        with np.errstate(all="ignore"):
            result = getattr(names, self.backward)(np.array(dy), cache)
        return result if len(self.gradients) > 1 else (result,)

    def _rules(self, answer: Answer, trial: Trial) -> list[str]:
        """Check that backward changes neither dy nor the cache, and may be called twice."""
        forward, backward = (answer.function(name) for name in (self.forward, self.backward))
        y, cache = answer.call(forward, *copy.deepcopy(trial.inputs))
        dy = upstream(y)
        kept_dy, kept_cache = dy.copy(), copy.deepcopy(_arrays(cache))
        first = copy.deepcopy(self._tuple(answer.call(backward, dy, cache)))
        if not np.array_equal(dy, kept_dy):
            return [
                "the values are right, but the gradient that came in was changed in place; "
                "somebody else may still need it"
            ]
        if any(not np.array_equal(a, b) for a, b in zip(_arrays(cache), kept_cache, strict=True)):
            return [
                "the values are right, but an array of the cache was changed in place; a second "
                "call of the backward pass would be wrong"
            ]
        second = self._tuple(answer.call(backward, dy, cache))
        if any(not same(a, b) for a, b in zip(second, first, strict=True)):
            return ["the values are right, but a second call with the same cache differs"]
        return []

    def _tuple(self, result: Any) -> tuple[Any, ...]:
        return result if isinstance(result, tuple) else (result,)

    def _dtype(self, answer: Answer) -> list[str]:
        """Check that float32 stays float32."""
        inputs = tuple(map(_single, copy.deepcopy(self.trials[0].inputs)))
        forward, backward = (answer.function(name) for name in (self.forward, self.backward))
        y, cache = answer.call(forward, *inputs)
        result = self._tuple(answer.call(backward, _single(upstream(y)), cache))
        for name, gradient in zip(self.gradients, result, strict=True):
            if (found := np.asarray(gradient).dtype) != np.float32:
                return [
                    f"{name} is right in float64, but where all arrays are float32 it comes out as "
                    f"{found}. A NumPy number does that (np.sqrt(2); math.sqrt(2) does not), and "
                    "so does an array of whole numbers, or one made without dtype=...",
                ]
        return []

    def _gradcheck(self, answer: Answer) -> list[str]:
        """Let gradcheck have the last word."""
        pair = answer.function(self.forward), answer.function(self.backward)
        for trial in self.trials:
            try:
                answer.call(lambda trial=trial: _checked(pair, trial.inputs))
            except Stuck as stuck:
                if not isinstance(error := stuck.__cause__, GradcheckError):
                    raise
                broken = error.report.broken_rules
                return [f"gradcheck: {rule}" for rule in broken] or [
                    f"gradcheck: a relative error of {error.report.error:.1e} for {trial.label}"
                ]
        return []


def _checked(pair: Any, inputs: Inputs) -> None:
    gradcheck(pair, *copy.deepcopy(inputs))


def _error(got: Any, right: np.ndarray) -> float:
    scale = max(np.abs(right).max(initial=0.0), 1.0)
    return float(np.abs(got - right).max(initial=0.0) / scale)


def _beside(right_for: list[str], label: str) -> str:
    return f"right for {', and '.join(right_for)}; but for {label}:"


def upstream(y: Any) -> np.ndarray:
    """Return a gradient for a result y: normal numbers."""
    return np.asarray(np.random.default_rng(7).normal(size=np.shape(y)))


def _single(x: Any) -> Any:
    """Return float64 arrays as float32, and anything else as it is."""
    return x.astype("float32") if isinstance(x, np.ndarray) and x.dtype == np.float64 else x


def _arrays(cache: Any) -> list[np.ndarray]:
    """Return the arrays of a cache, which may hold caches."""
    if isinstance(cache, np.ndarray):
        return [cache]
    if isinstance(cache, dict):
        cache = list(cache.values())
    if isinstance(cache, tuple | list):
        return [array for item in cache for array in _arrays(item)]
    return []
