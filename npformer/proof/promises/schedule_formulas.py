"""The formulas of schedules, their published forms, and known faults.

s is the number of the step, w the length of the warm-up, T that of the training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

FORMULAS = {
    "noam": "lr d_model^-0.5 min(s^-0.5, s w^-1.5)",
    "cosine": "s / w, then final + (lr - final) (1 + cos(pi (s - w) / (T - w))) / 2",
    "linear": "s / w, then lr + (final - lr) (s - w) / (T - w)",
    "step": "lr gamma^floor(s / step_size)",
    "exponential": "lr gamma^s",
    "constant": "s / w, then lr",
}
"""Each kind of schedule and its formula."""

TITLES = {
    "noam": "a linear warm-up and an inverse square root",
    "cosine": "half a cosine",
    "linear": "a straight line",
    "step": "steps",
    "exponential": "an exponential",
    "constant": "a constant",
}

NAMES = {
    "noam": "noam",
    "inversesqrt": "noam",
    "invsqrt": "noam",
    "inversesquareroot": "noam",
    "rsqrt": "noam",
    "scheduledoptim": "noam",
    "transformer": "noam",
    "cosine": "cosine",
    "cos": "cosine",
    "linear": "linear",
    "exponential": "exponential",
    "steplr": "step",
    "stepdecay": "step",
    "stepschedule": "step",
    "constant": "constant",
    "warmup": "noam",
}
"""The kind that a name says, by what it may contain; the first that fits counts."""


@dataclass(frozen=True)
class ScheduleSettings:
    """The numbers of a schedule."""

    lr: float = 1.0
    d_model: float = 1.0
    warmup: float = 0.0
    total: float = 0.0
    final: float = 0.0
    step_size: float = 1.0
    gamma: float = 0.1


@dataclass(frozen=True)
class Shape:
    """A schedule's formula and the options in which forms and faults differ."""

    kind: str
    shift: int = 0
    """What is added to the number of the step."""
    warmup_shift: int = 0
    """What is added to both numbers in s / w."""
    power_of_d: float = -0.5
    power_of_w: float = -1.5
    choice: str = "min"
    progress: str = "after the warm-up"
    period: float = math.pi
    half: float = 0.5
    final_is_share: bool = False

    def __call__(self, step: int, settings: ScheduleSettings) -> float:
        """Return the learning rate of a step."""
        s = step + self.shift
        if self.kind == "noam":
            return self._noam(s, settings)
        if self.kind == "step":
            return settings.lr * float(settings.gamma ** math.floor(s / settings.step_size))
        if self.kind == "exponential":
            return settings.lr * float(settings.gamma**s)
        w = settings.warmup
        if s < w:
            return settings.lr * (s + self.warmup_shift) / (w + self.warmup_shift)
        return self._decay(s, settings)

    def _noam(self, s: int, settings: ScheduleSettings) -> float:
        if s <= 0:
            return 0.0 if s == 0 else math.nan
        decay, rise = s**-0.5, s * settings.warmup**self.power_of_w
        value = max(decay, rise) if self.choice == "max" else min(decay, rise)
        scale = settings.d_model**self.power_of_d
        return float(settings.lr * scale * value)

    def _decay(self, s: int, settings: ScheduleSettings) -> float:
        lr, w, total = settings.lr, settings.warmup, settings.total
        if self.kind == "constant":
            return lr
        final = settings.final * (lr if self.final_is_share else 1.0)
        whole_training = self.progress == "of the training"
        progress = s / total if whole_training else (s - w) / (total - w)
        progress = min(progress, 1.0)
        if self.kind == "linear":
            return lr + (final - lr) * progress
        return final + (lr - final) * self.half * (1.0 + math.cos(self.period * progress))


@dataclass(frozen=True)
class ScheduleVariant:
    """A formula, with some options, and what it is in words."""

    kind: str
    words: str
    is_right: bool
    value: Callable[[int, ScheduleSettings], float]

    def __str__(self) -> str:
        title = TITLES[self.kind]
        return f"{title}: {self.words}" if self.words else title


SHARE = "final is a share of lr"
FROM_0 = "steps are counted from 0"
LATE = "off by one: step 1 has the learning rate of step 0"
PEAK = "scaled so that lr is reached at the end of the warm-up"


def schedule_variants(
    kind: str, settings: ScheduleSettings, calls_count: bool
) -> Iterator[ScheduleVariant]:
    """Yield the formula of a kind, its forms, then its faults.

    `calls_count` says that the schedule counts its calls itself, so that step 1 is the first.
    """
    shape = Shape(kind)
    yield ScheduleVariant(kind, "", is_right=True, value=shape)
    if kind == "noam":
        yield ScheduleVariant(kind, PEAK, is_right=True, value=_scale_to_peak(shape))
    if settings.final and settings.lr != 1.0:
        yield ScheduleVariant(kind, SHARE, is_right=True, value=replace(shape, final_is_share=True))
    begins_at_peak = kind != "noam" and not settings.warmup
    late = replace(shape, shift=-1)
    if calls_count:
        yield ScheduleVariant(kind, FROM_0 if begins_at_peak else LATE, begins_at_peak, late)
    else:
        yield ScheduleVariant(kind, FROM_0, is_right=True, value=replace(shape, shift=1))
        yield ScheduleVariant(kind, LATE, is_right=False, value=late)
    if settings.warmup and kind != "noam":
        early = replace(shape, warmup_shift=1)
        yield ScheduleVariant(kind, "the warm-up is (s + 1) / (w + 1)", True, early)
    yield from _faults(shape, settings)
    if calls_count:
        early = replace(shape, shift=1)
        yield ScheduleVariant(
            kind, "off by one: step 1 has the learning rate of step 2", False, early
        )


def _faults(shape: Shape, settings: ScheduleSettings) -> Iterator[ScheduleVariant]:
    """Yield the faults of a kind."""
    faults: dict[str, Shape] = {}
    if shape.kind == "noam":
        faults = {
            "d_model has the power 0.5, not -0.5": replace(shape, power_of_d=0.5),
            "d_model has the power -1, not -0.5": replace(shape, power_of_d=-1.0),
            "d_model is left out": replace(shape, power_of_d=0.0),
            "the larger of both is taken, not the smaller": replace(shape, choice="max"),
            "the warm-up has the power -0.5, not -1.5": replace(shape, power_of_w=-0.5),
            "the warm-up has the power -1, not -1.5": replace(shape, power_of_w=-1.0),
        }
    if shape.kind == "cosine":
        faults = {
            "a whole cosine: it rises again after half of the training": replace(
                shape, period=2.0 * math.pi
            ),
            "a quarter of a cosine's period: it ends halfway": replace(shape, period=0.5 * math.pi),
            "1 + cos is not halved, so it begins at twice lr": replace(shape, half=1.0),
        }
    if shape.kind in ("cosine", "linear") and settings.warmup:
        words = "the decay does not begin after the warm-up, so it jumps there"
        faults[words] = replace(shape, progress="of the training")
    for words, value in faults.items():
        yield ScheduleVariant(shape.kind, words, is_right=False, value=value)


def _scale_to_peak(shape: Shape) -> Callable[[int, ScheduleSettings], float]:
    def value(step: int, settings: ScheduleSettings) -> float:
        plain = replace(settings, d_model=1.0)
        return shape(step, plain) * math.sqrt(settings.warmup)

    return value
