"""adam_update: one step of Adam."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from npformer.core import Array, a_type
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.invariants import failing
from npformer.optim import Adam
from npformer.proof.cases.case import draw

START = draw(3, 2)
GRADIENTS = [draw(3, 2, seed=t) * 10.0 ** (t - 3) for t in range(1, 6)]
SETTINGS = {"lr": 0.01, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3}


def steps_of(update: Callable[..., Any]) -> list[tuple[Any, ...]]:
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
        if not isinstance(result, tuple) or len(result) != 3:
            kind = "nothing" if result is None else a_type(result)
            raise Stuck(f"adam_update returned {kind}; expected a tuple: theta, m, v")
        for name, x, kept in zip(("theta", "g", "m", "v"), arguments, before, strict=False):
            if not np.array_equal(x, kept, equal_nan=True):
                raise Stuck(f"adam_update changed the {name} that came in; make a new array")
        return result

    return checked


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Compare five steps with those of the solution, and then with npformer's Adam."""
    found = steps_of(by_reader(answer))
    right = steps_of(exercise.run(exercise.solved).adam_update)
    variants: list[tuple[str, list[tuple[Any, ...]]]] = []
    for says, names in exercise.variants():
        with np.errstate(all="ignore"):
            variants.append((says, steps_of(names.adam_update)))
    for t, (got, wanted) in enumerate(zip(found, right, strict=True)):
        problems = [
            fault_of(name, got[i], wanted[i], variants=_at(variants, t, i), truth="Adam's")
            for i, name in ((1, "m"), (2, "v"), (0, "theta"))
        ]
        wrong = [problem for problem in problems[:2] if problem] or problems[2:]
        if any(wrong):  # a wrong theta may only follow from a wrong m or v
            return [*_right_before(t), *wrong]
    answer.quiet()
    kind = adam_by(by_reader(answer))
    problems = failing(
        answer, kind, "adams_first_step_has_size_lr", "adam_counts_steps_and_not_tensors"
    )
    return problems or _beside_npformer(kind)


def _at(variants: list[tuple[str, list[tuple[Any, ...]]]], t: int, i: int) -> list[tuple[str, Any]]:
    return [(says, steps[t][i]) for says, steps in variants]


def _right_before(t: int) -> list[str]:
    if t == 0:
        return []
    return [f"{'step 1 is' if t == 1 else f'steps 1 to {t} are'} right; but in step {t + 1}:"]


def adam_by(update: Callable[..., Any]) -> type[Adam]:
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


EXERCISE = Exercise(
    name="adam_update",
    title="one step of Adam",
    page="chapters/adam.md",
    hints=(
        "Five lines: m, v, their corrected versions, theta. Which of them uses the gradient, and "
        "which its square?",
        "A running mean: beta times the old value plus (1 - beta) times the new one. Each of m and "
        "v has its own beta. The corrected ones are used for theta, but not kept.",
        "m and v as running means of g and g^2; divide each by 1 minus its beta to the power t; "
        "theta minus lr times the first, divided by (the root of the second, plus eps).",
    ),
    why="""\
m_t = beta1 m_{t-1} + (1 - beta1) g_t adds up all gradients so far with the weights
(1 - beta1) beta1^(t-k), whose sum is 1 - beta1^t: m_0 = 0 has the rest. Divided by it they sum to
1, and m_hat is a mean. Likewise v. The root of v_hat is as large as a gradient, so the quotient is
about 1, and lr alone gives the length of the step: at t = 1 it is lr g / |g|.""",
    mark=mark,
    wrong=(
        Wrong(
            "it decays with the other moment's beta",
            "beta2 * v + (1.0 - beta2)",
            "beta1 * v + (1.0 - beta1)",
        ),
        Wrong(
            "it decays with the other moment's beta",
            "beta1 * m + (1.0 - beta1)",
            "beta2 * m + (1.0 - beta2)",
        ),
        Wrong(
            "it is a running mean of g; it should be one of its square",
            "(1.0 - beta2) * g * g",
            "(1.0 - beta2) * g",
        ),
        Wrong(
            "the new value is added in full; its weight and the old one's must sum to 1",
            "(1.0 - beta1) * g",
            "g",
        ),
        Wrong(
            "the new value is added in full; its weight and the old one's must sum to 1",
            "(1.0 - beta2) * g * g",
            "g * g",
        ),
        Wrong(
            "the weights of the old and the new value are swapped",
            "beta1 * m + (1.0 - beta1) * g",
            "(1.0 - beta1) * m + beta1 * g",
        ),
        Wrong(
            "the weights of the old and the new value are swapped",
            "beta2 * v + (1.0 - beta2) * g * g",
            "(1.0 - beta2) * v + beta2 * g * g",
        ),
        Wrong(
            "m and v are not corrected for their start at 0",
            "m_hat = m / (1.0 - beta1**t)\n    v_hat = v / (1.0 - beta2**t)",
            "m_hat = m\n    v_hat = v",
        ),
        Wrong("v is not corrected for its start at 0", "v / (1.0 - beta2**t)", "v"),
        Wrong("m is not corrected for its start at 0", "m / (1.0 - beta1**t)", "m"),
        Wrong(
            "the correction does not depend on the number of the step",
            "beta1**t)\n    v_hat = v / (1.0 - beta2**t)",
            "beta1)\n    v_hat = v / (1.0 - beta2)",
        ),
        Wrong("both corrections use the same beta", "1.0 - beta2**t", "1.0 - beta1**t"),
        Wrong("the root is missing", "(np.sqrt(v_hat) + eps)", "(v_hat + eps)"),
        Wrong(
            "eps stands inside the root; Adam adds it to the root",
            "(np.sqrt(v_hat) + eps)",
            "np.sqrt(v_hat + eps)",
        ),
        Wrong("eps is missing", "(np.sqrt(v_hat) + eps)", "np.sqrt(v_hat)"),
        Wrong("it climbs: a step against the gradient lowers the loss", "theta - lr", "theta + lr"),
        Wrong("lr is missing", "theta - lr * m_hat", "theta - m_hat"),
        Wrong(
            "the gradient itself is the direction; Adam goes along its running mean",
            "lr * m_hat",
            "lr * g",
        ),
        Wrong(
            "the corrected values are kept; the next step would correct them once more",
            "return theta, m, v",
            "return theta, m_hat, v_hat",
        ),
    ),
)
