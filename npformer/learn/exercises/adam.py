"""Marking a step of Adam: beside the solution, and as a part of npformer's Adam."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from npformer.core import Array
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import failing_invariants
from npformer.learn.exercises.trials import check_returned, mistaken_results
from npformer.optim import Adam
from npformer.proof.cases.case import draw

START = draw(3, 2)
GRADIENTS = [draw(3, 2, seed=t) * 10.0 ** (t - 3) for t in range(1, 6)]
SETTINGS = {"lr": 0.01, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3}


def five_steps(update: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Return theta, m and v after each step."""
    state: tuple[Any, ...] = START.copy(), 0.1 * draw(3, 2, seed=8), 0.1 * draw(3, 2, seed=9) ** 2
    found = []
    for t, g in enumerate(GRADIENTS, 1):
        state = update(state[0], g, state[1], state[2], t, **SETTINGS)
        found.append(state)
    return found


def by_reader(answer: Answer) -> Callable[..., Any]:
    """Return the reader's update, with a check of what it returns and that it changes no input."""
    update = answer.function("adam_update")

    def checked(*arguments: Any, **settings: Any) -> Any:
        before = [np.array(x) for x in arguments[:4]]
        result = answer.call(lambda: update(*arguments, **settings))
        check_returned("adam_update", result, 3, "theta, m, v")
        for name, x, old in zip(("theta", "g", "m", "v"), arguments, before, strict=False):
            if not np.array_equal(x, old, equal_nan=True):
                raise Stuck(f"adam_update changed the {name} that came in; make a new array")
        return result

    return checked


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Compare five steps with those of the solution, and then with npformer's Adam."""
    found = five_steps(by_reader(answer))
    right = five_steps(exercise.run(exercise.solved).adam_update)
    mistakes = mistaken_results(exercise.variants(), lambda names: five_steps(names.adam_update))
    for t, (got, wanted) in enumerate(zip(found, right, strict=True)):
        problems = []
        for i, name in ((1, "m"), (2, "v"), (0, "theta")):
            variants = [(says, steps[t][i]) for says, steps in mistakes]
            problems.append(fault_of(name, got[i], wanted[i], variants=variants, truth="Adam's"))
        wrong = [problem for problem in problems[:2] if problem] or problems[2:]
        if any(wrong):  # a wrong theta may only follow from a wrong m or v
            return [*_right_before(t), *wrong]
    answer.quiet()
    kind = adam_with(by_reader(answer))
    problems = failing_invariants(
        answer, kind, "adams_first_step_has_size_lr", "adam_counts_steps_and_not_tensors"
    )
    return problems or _beside_npformer(kind)


def _right_before(t: int) -> list[str]:
    if t == 0:
        return []
    return [f"{'step 1 is' if t == 1 else f'steps 1 to {t} are'} right; but in step {t + 1}:"]


def adam_with(update: Callable[..., Any]) -> type[Adam]:
    """Return an `Adam` whose steps are made by a reader's update."""

    class AdamByHand(Adam):
        def step(self, gradients: Mapping[str, Array]) -> None:
            lr, (beta1, beta2) = self.current_lr(), self.betas
            self.steps += 1
            for name, theta, g in self._pieces(gradients):
                m, v = self._moments.of(name, theta)
                new = update(theta, g, m, v, self.steps, lr, beta1, beta2, self.eps)
                theta[...], m[...], v[...] = new

    return AdamByHand


def _beside_npformer(kind: type[Adam]) -> list[str]:
    """Compare ten steps with npformer's own."""
    ends = []
    for one in (kind, Adam):
        theta = {"a": START.copy()}
        optimizer = one(theta, lr=0.1)
        for t in range(10):
            optimizer.step({"a": draw(*START.shape, seed=t)})
        ends.append(theta["a"])
    return [] if same(*ends) else ["after ten steps it is not where npformer's Adam is"]
