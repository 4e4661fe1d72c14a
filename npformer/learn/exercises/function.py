"""Marking a function without a backward pass: what it returns, and what it must not change."""

import copy
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import a_type
from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.pair import Trial


@dataclass(frozen=True)
class Function:
    """How to mark a function. Called, it returns what is wrong with an answer, in words."""

    function: str
    returns: tuple[str, ...]  # what it returns, in order
    trials: tuple[Trial, ...]
    truth: str  # what right numbers are called

    def __call__(self, exercise: Exercise, answer: Answer) -> list[str]:
        """Return what is wrong, in words; an empty list if all is right."""
        own = answer.function(self.function)
        right_for: list[str] = []
        for trial in self.trials:
            given = copy.deepcopy(trial.inputs)
            got = answer.call(own, *given)
            if len(self.returns) > 1 and not (
                isinstance(got, tuple) and len(got) == len(self.returns)
            ):
                kind = "nothing" if got is None else a_type(got)
                return [
                    f"{self.function} returned {kind}; expected a tuple: {', '.join(self.returns)}"
                ]
            problems = self._values(exercise, trial, self._tuple(got))
            if problems and right_for:
                return [f"right for {', and '.join(right_for)}; but for {trial.label}:", *problems]
            if problems:
                return problems
            for before, after in zip(trial.inputs, given, strict=True):
                if isinstance(before, np.ndarray) and not np.array_equal(before, after):
                    return ["the values are right, but an array that came in was changed in place"]
            right_for.append(trial.label)
        answer.quiet()
        return []

    def _values(self, exercise: Exercise, trial: Trial, got: tuple[Any, ...]) -> list[str]:
        """Compare with what the solution returns, and typical mistakes."""
        right = self._of(exercise.run(exercise.solved), trial)
        variants = []
        for says, names in exercise.variants():
            try:
                variants.append((says, self._of(names, trial)))
            except Exception:  # a mistake that does not run on this trial explains nothing
                continue
        problems = [
            fault_of(
                name,
                as_array(got[i]),
                right[i],
                variants=[
                    (says, found[i]) for says, found in variants if not same(found[i], right[i])
                ],
                truth=self.truth,
            )
            for i, name in enumerate(self.returns)
        ]
        return [problem for problem in problems if problem]

    def _of(self, names: types.SimpleNamespace, trial: Trial) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            found = getattr(names, self.function)(*copy.deepcopy(trial.inputs))
        return tuple(map(np.array, self._tuple(found)))

    def _tuple(self, found: Any) -> tuple[Any, ...]:
        return found if len(self.returns) > 1 else (found,)


def as_array(found: Any) -> Any:
    """Return a list of numbers as an array, and anything else as it is."""
    try:
        return np.array(found) if isinstance(found, list | tuple) else found
    except ValueError:  # lists of different lengths in it
        return found
