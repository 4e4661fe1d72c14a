"""Schedules: a factor for the learning rate of each step."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from npformer.core import Registry, checks, describe
from npformer.core.support.explained_errors import drop_class_from_names

Schedule = Callable[[int], float]
"""Takes the number of a step, counted from 1, and returns a factor for the learning rate."""


@dataclass(frozen=True)
class constant:
    """The schedule that is always 1."""

    def __call__(self, step: int) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class warmup_inverse_sqrt:
    """A linear warm-up over `warmup` steps, then decay with the inverse square root.

    factor(s) = min(s / warmup, sqrt(warmup / s)), which is 1 at s = warmup. Vaswani et al. (2017,
    section 5.3) have lr = d_model^-0.5 min(s^-0.5, s warmup^-1.5) with warmup = 4000. This is the
    same with ``lr = (d_model * warmup) ** -0.5``.
    """

    warmup: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "warmup", checks.positive("warmup", self.warmup))

    def __call__(self, step: int) -> float:
        """Return the factor of a step."""
        checks.positive("step", step)
        return min(step / self.warmup, math.sqrt(self.warmup / step))


@drop_class_from_names
@dataclass(frozen=True)
class cosine:
    """A linear warm-up over `warmup` steps, then half a cosine from 1 down to `final`.

    Step `total` and all later ones have the factor `final`; if it is 0, they change nothing.
    """

    total: int
    warmup: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        total = checks.positive("total", self.total)
        final = checks.not_negative("final", self.final)
        if total == 1 and final == 0.0:
            raise ValueError(
                "total is 1 and final 0.0; expected at least 2 steps, or a factor above 0 at the "
                "end: the only step would change nothing"
            )
        warmup = checks.whole("warmup", self.warmup, at_least=0, at_most=total - 1)
        # Numbers of Python, in place of NumPy's; the class is frozen.
        object.__setattr__(self, "total", total)
        object.__setattr__(self, "warmup", warmup)
        object.__setattr__(self, "final", final)

    def __call__(self, step: int) -> float:
        """Return the factor of a step."""
        checks.positive("step", step)
        if step <= self.warmup:
            return step / self.warmup
        return self._decay(min((step - self.warmup) / (self.total - self.warmup), 1.0))

    def _decay(self, progress: float) -> float:
        """Return the factor after the warm-up; `progress` goes from 0 to 1."""
        return self.final + (1.0 - self.final) * 0.5 * (1.0 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class linear(cosine):
    """A linear warm-up over `warmup` steps, then a straight line from 1 down to `final`.

    Its settings are those of `cosine`. BERT was trained with it (Devlin et al., 2019).
    """

    def _decay(self, progress: float) -> float:
        return 1.0 - (1.0 - self.final) * progress


SCHEDULES: Registry[Schedule] = Registry(
    "schedule",
    {
        "constant": constant,
        "warmup_inverse_sqrt": warmup_inverse_sqrt,
        "cosine": cosine,
        "linear": linear,
    },
    table="npformer.optim.SCHEDULES",
    function="a function of the step that returns a factor",
)
"""What ``Adam(schedule=...)`` takes by name. Builders get only their options, and from `fit` the
steps of the training if they have an option ``total``; they return a `Schedule`."""


def schedule_of(schedule: Schedule | str) -> Schedule:
    """Return the schedule that `Adam` was given, as a function or as a name."""
    if isinstance(schedule, str):
        return SCHEDULES.make(schedule)
    builders = [name for name, builder in SCHEDULES.items() if builder is schedule]
    if builders or not callable(schedule):
        what = f"the builder {builders[0]} itself" if builders else describe(schedule)
        raise TypeError(
            f"schedule is {what}; expected a function of the step that returns a factor, "
            "such as npformer.optim.cosine(total), or its name: 'cosine(total=1000)'"
        )
    return schedule


def schedule_for(spec: str, steps: int, warmup: int = 0) -> Schedule:
    """Return a schedule by its name, as long as a training, unless its options give a total.

    The training has `steps` steps; the learning rate rises in the first `warmup` of them. In a
    single one nothing rises or falls.
    """
    if "total" in SCHEDULES.parse(spec)[1]:
        return SCHEDULES.make(spec)
    if steps == 1:
        return constant()
    if warmup:
        return SCHEDULES.make(SCHEDULES.add_options(spec, total=steps, warmup=warmup))
    return SCHEDULES.make(SCHEDULES.add_options(spec, total=steps))


def factor_at(schedule: Schedule, step: int) -> float:
    """Return the factor of a step, after checking that it is a finite number of at least 0."""
    factor = schedule(step)
    if not isinstance(factor, Real) or not 0.0 <= float(factor) < math.inf:
        error = ValueError if isinstance(factor, Real) else TypeError
        raise error(
            f"the schedule {schedule!r} returned {factor!r} for step {step}; expected a finite "
            "number of at least 0, the factor for the learning rate"
        )
    return float(factor)


def factors_of(schedule: Schedule, steps: int) -> dict[str, float]:
    """Return a schedule's factors at some of the `steps` steps of a training."""
    shown_steps = [m * 10**k for k in range(10) for m in (1, 2, 5)]
    return {str(step): float(schedule(step)) for step in shown_steps if step <= steps}
