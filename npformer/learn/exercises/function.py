"""Marking a function without a backward pass: what it returns, and what it must not change."""

import copy
import types
from functools import partial
from typing import Any

import numpy as np

from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import broken_invariants
from npformer.learn.exercises.trials import Trial, check_returned, check_trials, faults, tuple_of


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Return what is wrong with a function."""
    function = answer.function(exercise.name)
    check_trials(exercise.trials, partial(_check, exercise, answer, function))
    answer.listening = False
    return broken_invariants(answer, exercise.made(function), *exercise.invariants)


def _check(exercise: Exercise, answer: Answer, own: Any, trial: Trial) -> None:
    """Compare with what the solution returns, and typical mistakes."""
    names, inputs = exercise.returns, copy.deepcopy(trial.inputs)
    result = answer.call(own, *inputs)
    if len(names) > 1:
        check_returned(exercise.name, result, names)

    def compute(solution: types.SimpleNamespace) -> tuple[np.ndarray, ...]:
        function = getattr(solution, exercise.name)
        return tuple(map(np.array, tuple_of(function(*copy.deepcopy(trial.inputs)), names)))

    faults_by_name = faults(exercise, [*map(array_of_list, tuple_of(result, names))], compute)
    if any(faults_by_name.values()):
        raise Stuck(*filter(None, faults_by_name.values()))
    pairs = zip(trial.inputs, inputs, strict=True)
    if not all(np.array_equal(a, b) for a, b in pairs if isinstance(a, np.ndarray)):
        raise Stuck("the values are right, but an array that came in was changed in place")


def array_of_list(found: Any) -> Any:
    """Return a list of numbers as an array, and anything else as it is."""
    try:
        return np.array(found) if isinstance(found, list | tuple) else found
    except ValueError:  # lists of different lengths in it
        return found
