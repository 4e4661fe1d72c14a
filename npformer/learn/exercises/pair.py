"""Marking a backward pass: its values, and gradcheck, which knows the rules of the protocol."""

import copy
import inspect
import math
import types
from functools import partial
from typing import Any

import numpy as np

from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import same
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import broken_invariants
from npformer.learn.exercises.trials import (
    Trial,
    check_returned,
    check_trials,
    faults,
    pass_gradcheck,
    tuple_of,
)

ROUNDING, SINGLE = 1e-12, 1e-9
"""Relative errors: a formula in float64 has less than the first, central differences have less than
the second, and what is rounded to float32 has more."""


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Return what is wrong with NAME_backward, for which NAME is given."""
    marking = Marking(exercise, answer)
    check_trials(exercise.trials, marking.check)
    answer.listening = False
    if answer.differences:  # neither made for float32 nor exact enough for gradcheck
        return []
    marking.check_dtype(exercise.trials[0])
    for trial in exercise.trials:
        pass_gradcheck(answer, "", f" for {trial.label}", marking.own, *trial.inputs)
    return broken_invariants(answer, exercise.made(marking.own), *exercise.invariants)


class Marking:
    """A reader's pair beside the right one."""

    def __init__(self, exercise: Exercise, answer: Answer) -> None:
        self.exercise, self.answer, self.gradients = exercise, answer, exercise.returns
        self.names = exercise.name.removesuffix("_backward"), exercise.name
        self.solved = exercise.run(exercise.solved)
        self.own = tuple(map(answer.function, self.names))

    def check(self, trial: Trial) -> None:
        """Compare values with those of the solution and of typical mistakes."""
        y, _ = getattr(self.solved, self.names[0])(*copy.deepcopy(trial.inputs))
        dy = upstream(y)
        result = tuple_of(self._backward(trial, dy, y), self.gradients)
        right, ones = (
            self._run(trial, gradient, self.solved) for gradient in (dy, np.ones_like(dy))
        )
        run = partial(self._run, trial, dy)
        problems = faults(self.exercise, result, run, ones, counts=trial.counts)
        if any(problems.values()):
            fine = [name for name, problem in problems.items() if not problem]
            beside = [f"right: {', '.join(fine)}"] if fine else []
            raise Stuck(*filter(None, problems.values()), *beside)
        self._check_digits(max(map(_error, result, right)))

    def _check_digits(self, error: float) -> None:
        """Say if gradients were rounded to float32; note if they seem to be finite differences."""
        answer, (forward, backward) = self.answer, self.names
        if answer.n_calls(forward) > 2 * answer.n_calls(backward):
            says = f"{forward} is called over and over, to measure slopes; what is the formula?"
            answer.differences = says
        elif error > ROUNDING:
            digits = f"right to {-math.log10(error):.0f} digits, where a formula gives 15"
            if error > SINGLE:
                names = ", ".join(self.gradients)
                raise Stuck(f"{names}: {digits}. Is something rounded to float32?")
            answer.differences = f"{digits}: differences, or a constant that is cut short?"

    def _shapes(self, trial: Trial, y: Any) -> str:
        """Return a text with the shapes of a trial's arrays."""
        functions = (getattr(self.solved, name) for name in self.names)
        forward, backward = (inspect.signature(function).parameters for function in functions)
        pairs = zip(forward, trial.inputs, strict=False)
        shapes = {name: x.shape for name, x in pairs if isinstance(x, np.ndarray)}
        shapes[next(iter(backward))] = np.shape(y)
        return f"[{', '.join(f'{name} {shape}' for name, shape in shapes.items())}]"

    def _backward(self, trial: Trial, dy: Any, y: Any) -> Any:
        """Return what the reader's pair returns for dy, after a look at its form."""
        forward, backward = self.names
        try:
            result_of_answer, cache = self.answer.call(self.own[0], *copy.deepcopy(trial.inputs))
        except (TypeError, ValueError):
            raise Stuck(f"{forward} no longer returns (y, cache)") from None
        if not same(result_of_answer, y):
            raise Stuck(
                f"{forward} gives other numbers than the one you were given; put it back. "
                f"`npformer exercises start DIR {backward} --force` writes the file anew"
            )
        try:
            result = self.answer.call(self.own[1], np.array(dy), cache)
        except Stuck as stuck:
            raise Stuck(f"{stuck} {self._shapes(trial, y)}") from stuck
        check_returned(backward, result, self.gradients)
        return result

    def _run(self, trial: Trial, dy: Any, solution: types.SimpleNamespace) -> tuple[Any, ...]:
        """Return the gradients that the right pair, or a mistake, gives."""
        forward, backward = (getattr(solution, name) for name in self.names)
        _, cache = forward(*copy.deepcopy(trial.inputs))
        return tuple_of(backward(np.array(dy), cache), self.gradients)

    def check_dtype(self, trial: Trial) -> None:
        """Check that float32 stays float32."""
        inputs = tuple(map(_single, copy.deepcopy(trial.inputs)))
        y, cache = self.answer.call(self.own[0], *inputs)
        result = self.answer.call(self.own[1], _single(upstream(y)), cache)
        for name, gradient in zip(self.gradients, tuple_of(result, self.gradients), strict=True):
            if (dtype := np.asarray(gradient).dtype) != np.float32:
                raise Stuck(
                    f"{name} is right in float64, but where all arrays are float32 it comes out as "
                    f"{dtype}. A NumPy number does that (np.sqrt(2); math.sqrt(2) does not), and "
                    "so does an array of whole numbers, or one made without dtype=..."
                )


def _error(got: Any, right: np.ndarray) -> float:
    scale = max(np.abs(right).max(initial=0.0), 1.0)
    return float(np.abs(got - right).max(initial=0.0) / scale)


def upstream(y: Any) -> np.ndarray:
    """Return a gradient for a result y: normal numbers."""
    return np.asarray(np.random.default_rng(7).normal(size=np.shape(y)))


def _single(x: Any) -> Any:
    """Return float64 arrays as float32, and anything else as it is."""
    return x.astype("float32") if isinstance(x, np.ndarray) and x.dtype == np.float64 else x
