"""Marking a step of Adam beside the solution: as a part of npformer's Adam."""

from collections.abc import Callable
from typing import Any

from npformer.learn.exercises import function
from npformer.learn.exercises.answer import Answer
from npformer.learn.exercises.diagnosis import same
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import failing_invariants
from npformer.learn.exercises.trials import Trial
from npformer.optim import Adam
from npformer.optim.optimizer import Piece
from npformer.proof.cases.case import draw

START = draw(3, 2)
MOMENTS = 0.1 * draw(3, 2, seed=8), 0.1 * draw(3, 2, seed=9) ** 2
SETTINGS = 0.01, 0.8, 0.95, 1e-3  # lr, beta1, beta2, eps

TRIALS = [
    Trial(f"step {t}", START, draw(3, 2, seed=t) * 10.0 ** (t - 3), *MOMENTS, t, *SETTINGS)
    for t in range(1, 6)
]


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Return what is wrong with an update, and with npformer's Adam if its steps are made by it."""
    if problems := function.mark(exercise, answer):
        return problems
    update = answer.function(exercise.name)
    kind = adam_with(lambda *arguments: answer.call(update, *arguments))
    problems = failing_invariants(answer, kind, *exercise.invariants)
    ends = []
    for one in (kind, Adam):
        theta = {"a": START.copy()}
        optimizer = one(theta, lr=0.1)
        for t in range(10):
            optimizer.step({"a": draw(*START.shape, seed=t)})
        ends.append(theta["a"])
    away = [] if same(*ends) else ["after ten steps it is not where npformer's Adam is"]
    return problems or away


def adam_with(update: Callable[..., Any]) -> type[Adam]:
    """Return an `Adam` whose steps are made by a reader's update."""

    class AdamByHand(Adam):
        def _update(self, pieces: list[Piece], lr: float) -> None:
            for name, theta, g in pieces:
                m, v = self._moments.of(name, theta)
                new = update(theta, g, m, v, self.steps, lr, *self.betas, self.eps)
                theta[...], m[...], v[...] = new

    return AdamByHand
