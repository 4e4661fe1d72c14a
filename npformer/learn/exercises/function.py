"""Marking a function without a backward pass: what it returns, and what it must not change."""

import copy
import types
from functools import partial
from typing import Any

import numpy as np

from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.diagnosis import fault_of
from npformer.learn.exercises.exercise import Exercise, Mark
from npformer.learn.exercises.trials import (
    Trial,
    as_tuple,
    check_returned,
    first_problems,
    mistaken_results,
)


def function(
    name: str, returns: str, truth: str, *trials: Trial, beside: Any = lambda *given: []
) -> Mark:
    """Return how to mark a function.

    `returns` are its results, in order: "y, keys". `truth` is what right numbers are called. If all
    trials are right, `beside` says what else is wrong.
    """
    names = returns.split(", ")

    def mark(exercise: Exercise, answer: Answer) -> list[str]:
        own = answer.function(name)
        problems = first_problems(trials, partial(compared, exercise, answer, own))
        answer.listening = False
        return problems or beside(exercise, answer, own)

    def compared(exercise: Exercise, answer: Answer, own: Any, trial: Trial) -> list[str]:
        """Compare with what the solution returns, and typical mistakes."""
        given = copy.deepcopy(trial.inputs)
        got = answer.call(own, *given)
        if len(names) > 1:
            check_returned(name, got, names)

        def results(solution: types.SimpleNamespace) -> tuple[np.ndarray, ...]:
            found = getattr(solution, name)(*copy.deepcopy(trial.inputs))
            return tuple(map(np.array, as_tuple(found, names)))

        right = results(exercise.run(exercise.solved))
        mistakes = mistaken_results(exercise.variants(), results)
        problems = []
        for i, (of, each) in enumerate(zip(names, as_tuple(got, names), strict=True)):
            variants = [(says, found[i]) for says, found in mistakes]
            problems.append(fault_of(of, as_array(each), right[i], variants=variants, truth=truth))
        if found := list(filter(None, problems)):
            return found
        both = zip(trial.inputs, given, strict=True)
        if all(np.array_equal(a, b) for a, b in both if isinstance(a, np.ndarray)):
            return []
        return ["the values are right, but an array that came in was changed in place"]

    return mark


def as_array(found: Any) -> Any:
    """Return a list of numbers as an array, and anything else as it is."""
    try:
        return np.array(found) if isinstance(found, list | tuple) else found
    except ValueError:  # lists of different lengths in it
        return found
