"""Marking a function without a backward pass: what it returns, and what it must not change."""

import copy
import types
from typing import Any

import numpy as np

from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.trials import Trial, check_returned, first_problems, mistaken_results


class Function:
    """How to mark a function. Called, it returns what is wrong with an answer, in words.

    `returns` are its results, in order: "y, keys". `truth` is what right numbers are called.
    """

    def __init__(self, function: str, returns: str, truth: str, *trials: Trial) -> None:
        self.function, self.returns = function, returns.split(", ")
        self.truth, self.trials = truth, trials

    def __call__(self, exercise: Exercise, answer: Answer) -> list[str]:
        """Return what is wrong, in words; an empty list if all is right."""
        own = answer.function(self.function)

        def check(trial: Trial) -> list[str]:
            given = copy.deepcopy(trial.inputs)
            got = answer.call(own, *given)
            if len(self.returns) > 1:
                check_returned(self.function, got, len(self.returns), ", ".join(self.returns))
            problems = self._values(exercise, trial, self._tuple(got))
            for before, after in zip(trial.inputs, given, strict=True):
                if isinstance(before, np.ndarray) and not np.array_equal(before, after):
                    changed = "the values are right, but an array that came in was changed in place"
                    return problems or [changed]
            return problems

        problems = first_problems(self.trials, check)
        answer.quiet()
        return problems

    def _values(self, exercise: Exercise, trial: Trial, got: tuple[Any, ...]) -> list[str]:
        """Compare with what the solution returns, and typical mistakes."""

        def results(names: types.SimpleNamespace) -> tuple[np.ndarray, ...]:
            found = getattr(names, self.function)(*copy.deepcopy(trial.inputs))
            return tuple(map(np.array, self._tuple(found)))

        right = results(exercise.run(exercise.solved))
        mistakes = mistaken_results(exercise.variants(), results)
        problems = []
        for i, name in enumerate(self.returns):
            variants = [
                (says, found[i]) for says, found in mistakes if not same(found[i], right[i])
            ]
            problems.append(
                fault_of(name, as_array(got[i]), right[i], variants=variants, truth=self.truth)
            )
        return [problem for problem in problems if problem]

    def _tuple(self, found: Any) -> tuple[Any, ...]:
        return found if len(self.returns) > 1 else (found,)


def as_array(found: Any) -> Any:
    """Return a list of numbers as an array, and anything else as it is."""
    try:
        return np.array(found) if isinstance(found, list | tuple) else found
    except ValueError:  # lists of different lengths in it
        return found
