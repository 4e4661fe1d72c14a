"""Marking a function without a backward pass: what it returns, and what it must not change."""

import copy
import types
from functools import partial
from typing import Any

import numpy as np

from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.diagnosis import fault_of
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import Check
from npformer.learn.exercises.trials import Trial, check_returned, first_problems, mistaken_results


class Function:
    """How to mark a function. Called, it returns what is wrong with an answer, in words.

    `returns` are its results, in order: "y, keys". `truth` is what right numbers are called. If all
    trials are right, `beside` says what else is wrong.
    """

    def __init__(
        self,
        function: str,
        returns: str,
        truth: str,
        *trials: Trial,
        beside: Check = lambda answer, own: [],
    ) -> None:
        self.function, self.returns = function, returns.split(", ")
        self.truth, self.trials, self.beside = truth, trials, beside

    def __call__(self, exercise: Exercise, answer: Answer) -> list[str]:
        """Return what is wrong, in words; an empty list if all is right."""
        own = answer.function(self.function)
        problems = first_problems(self.trials, partial(self._problems, exercise, answer, own))
        answer.listening = False
        return problems or self.beside(answer, own)

    def _problems(self, exercise: Exercise, answer: Answer, own: Any, trial: Trial) -> list[str]:
        """Compare with what the solution returns, and typical mistakes."""
        given = copy.deepcopy(trial.inputs)
        got = answer.call(own, *given)
        if len(self.returns) > 1:
            check_returned(self.function, got, self.returns)

        def results(names: types.SimpleNamespace) -> tuple[np.ndarray, ...]:
            found = getattr(names, self.function)(*copy.deepcopy(trial.inputs))
            return tuple(map(np.array, self._tuple(found)))

        right = results(exercise.run(exercise.solved))
        mistakes = mistaken_results(exercise.variants(), results)
        problems = []
        for i, (name, each) in enumerate(zip(self.returns, self._tuple(got), strict=True)):
            variants = [(says, found[i]) for says, found in mistakes]
            fault = fault_of(name, as_array(each), right[i], variants=variants, truth=self.truth)
            problems += [fault] if fault else []
        changed = "the values are right, but an array that came in was changed in place"
        same = all(map(np.array_equal, arrays(trial.inputs), arrays(given)))
        return problems if problems or same else [changed]

    def _tuple(self, found: Any) -> tuple[Any, ...]:
        return found if len(self.returns) > 1 else (found,)


def arrays(inputs: tuple[Any, ...]) -> list[np.ndarray]:
    """Return those of some inputs that are arrays."""
    return [each for each in inputs if isinstance(each, np.ndarray)]


def as_array(found: Any) -> Any:
    """Return a list of numbers as an array, and anything else as it is."""
    try:
        return np.array(found) if isinstance(found, list | tuple) else found
    except ValueError:  # lists of different lengths in it
        return found
