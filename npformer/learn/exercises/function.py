"""Marking a function without a backward pass: what it returns, and what it must not change."""

import copy
import types
from functools import partial
from typing import Any

import numpy as np

from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import failing_invariants
from npformer.learn.exercises.trials import Trial, as_tuple, check_returned, check_trials, faults


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Return what is wrong with a function."""
    own = answer.function(exercise.name)
    check_trials(exercise.trials, partial(_check, exercise, answer, own))
    answer.listening = False
    return failing_invariants(answer, exercise.made(own), *exercise.invariants)


def _check(exercise: Exercise, answer: Answer, own: Any, trial: Trial) -> None:
    """Compare with what the solution returns, and typical mistakes."""
    names, given = exercise.returns, copy.deepcopy(trial.inputs)
    got = answer.call(own, *given)
    if len(names) > 1:
        check_returned(exercise.name, got, names)

    def compute(solution: types.SimpleNamespace) -> tuple[np.ndarray, ...]:
        function = getattr(solution, exercise.name)
        return tuple(map(np.array, as_tuple(function(*copy.deepcopy(trial.inputs)), names)))

    found = faults(exercise, [*map(as_array, as_tuple(got, names))], compute)
    if any(found.values()):
        raise Stuck(*filter(None, found.values()))
    both = zip(trial.inputs, given, strict=True)
    if not all(np.array_equal(a, b) for a, b in both if isinstance(a, np.ndarray)):
        raise Stuck("the values are right, but an array that came in was changed in place")


def as_array(found: Any) -> Any:
    """Return a list of numbers as an array, and anything else as it is."""
    try:
        return np.array(found) if isinstance(found, list | tuple) else found
    except ValueError:  # lists of different lengths in it
        return found
