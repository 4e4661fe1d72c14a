"""schedulecheck: does a learning rate's schedule follow its formula, step by step?"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from npformer.core import checks, describe
from npformer.proof.promises.optimizer_report import (
    TOLERANCE,
    OptimcheckError,
    OptimcheckReport,
)
from npformer.proof.promises.runs import Difference
from npformer.proof.promises.schedule_calls import (
    count_steps,
    function_of_step,
    make_schedule,
    read_schedule_settings,
)
from npformer.proof.promises.schedule_formulas import (
    FORMULAS,
    NAMES,
    TITLES,
    ScheduleSettings,
    ScheduleVariant,
    schedule_variants,
)

MOST_STEPS = 20_000
"""How far a schedule is followed that counts its steps itself."""

SETTINGS_OF_SCHEDULE = {
    "noam": ("lr", "d_model", "warmup"),
    "cosine": ("lr", "warmup", "total", "final"),
    "linear": ("lr", "warmup", "total", "final"),
    "step": ("lr", "step_size", "gamma"),
    "exponential": ("lr", "gamma"),
    "constant": ("lr", "warmup"),
}
"""The settings in a formula."""

NEEDS = {"noam": ("warmup",), "cosine": ("total",), "linear": ("total",)}
"""The settings that a formula cannot do without."""


def schedulecheck(
    schedule: Any,
    *,
    kind: str | None = None,
    lr: float | None = None,
    d_model: float | None = None,
    warmup: float | None = None,
    total: float | None = None,
    final: float | None = None,
    step_size: float | None = None,
    gamma: float | None = None,
    tolerance: float = TOLERANCE,
) -> OptimcheckReport:
    """Compare a schedule of the learning rate, written by anybody, with its formula.

    Parameters
    ----------
    schedule : function, object or class
        A function of the step, which may have further arguments such as d_model and warmup; an
        object with ``__call__(step)``, ``get_lr(step)`` or ``step()``, of which copies are used; or
        its class, which is made with the numbers below.
    kind : str, optional
        "noam" (linear warm-up and inverse square root, Vaswani et al., 2017), "cosine", "linear",
        "step", "exponential" or "constant". By default, what its name or its arguments say.
    lr, d_model, warmup, total, final, step_size, gamma : float, optional
        Numbers of the formula: the largest learning rate or the factor, the width of the model, the
        steps of the warm-up and of the training, the last learning rate, the steps between drops
        and the factor of each. By default, those of the schedule under one of the usual names.
    tolerance : float
        The largest relative error that passes.

    Returns
    -------
    OptimcheckReport
        Which formula it is, and the step at which it first leaves it.

    Raises
    ------
    OptimcheckError
        It follows another formula; the message is the report, which names the known fault.
    TypeError
        Its kind, or a number that the formula needs, is not known.

    Examples
    --------
    >>> import npformer as nf
    >>> nf.schedulecheck(nf.optim.cosine(total=100, warmup=10)).diagnosis
    'half a cosine'
    """
    tolerance = checks.number("tolerance", tolerance, above=0.0)
    name = getattr(schedule, "__name__", type(schedule).__name__)
    kind = kind_of_schedule(name) if kind is None else checks.choice("kind", kind, FORMULAS)
    values = (lr, d_model, warmup, total, final, step_size, gamma)
    names = [field.name for field in fields(ScheduleSettings)]
    named = zip(names, values, strict=True)
    stated = {n: _check_number(n, x) for n, x in named if x is not None}
    if inspect.isclass(schedule):
        schedule = make_schedule(schedule, stated)
    call = function_of_step(schedule, stated)
    settings = {**read_schedule_settings(schedule), **(call[1] if call else {}), **stated}
    kind = kind or _kind_of_settings(settings)
    if kind is None:
        raise TypeError(
            f"neither the name {name!r} nor the numbers {describe(settings)} say a kind of "
            f"schedule; expected one of {list(FORMULAS)}: schedulecheck(schedule, kind='noam')"
        )
    missing = [n for n in NEEDS.get(kind, ()) if not settings.get(n)]
    if missing:
        raise TypeError(
            f"the schedule {name} has no {missing[0]} under a usual name; its numbers are "
            f"{describe(settings)}. Pass it: schedulecheck(schedule, {missing[0]}=100)"
        )
    numbers = ScheduleSettings(**settings)
    if numbers.total and numbers.warmup >= numbers.total:
        raise ValueError(
            f"warmup is {numbers.warmup:g} and total {numbers.total:g}; expected a warm-up that "
            "ends before the training"
        )
    rates, notes = _rates(call[0] if call else None, schedule, numbers)
    report = _report(name, kind, numbers, rates, call is None, tolerance)
    report = replace(report, notes=[*notes, *_notes_of_end(rates, numbers)])
    if not report.passed:
        raise OptimcheckError(report)
    return report


def says_schedule(name: str) -> bool:
    """Return whether a name says that something is a schedule, of whatever kind."""
    words = {word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return bool(words & {"lr", "schedule", "scheduler", "rate"})


def _kind_of_settings(settings: dict[str, float]) -> str | None:
    """Return the kind that only some settings have: the width of a model, a size of steps."""
    if {"d_model", "warmup"} <= settings.keys():
        return "noam"
    return "step" if {"step_size", "gamma"} <= settings.keys() else None


def _check_number(name: str, value: float) -> float:
    """Return a setting, checked: steps are whole numbers, the others not negative."""
    if name in ("warmup", "total", "step_size"):
        return float(checks.whole(name, value, at_least=1 if name == "step_size" else 0))
    return checks.not_negative(name, value)


def kind_of_schedule(name: str) -> str | None:
    """Return the kind that the name of a schedule says; None if it says none."""
    plain = re.sub("[^a-z]", "", name.lower())
    return next((kind for word, kind in NAMES.items() if word in plain), None)


def _steps(settings: ScheduleSettings) -> list[int]:
    """Return the steps at which a schedule is compared: near each change, and some between."""
    w, total = int(settings.warmup), int(settings.total)
    last = total or max(5 * w, 40)
    near = [center + i for center in (w, last) for i in (-2, -1, 0, 1, 2)]
    between = [round(last * i / 16) for i in range(17)]
    return sorted({s for s in (1, 2, 3, *near, *between) if s >= 1})


def _rates(
    function: Callable[[int], Any] | None, schedule: Any, settings: ScheduleSettings
) -> tuple[dict[int, float], list[str]]:
    """Return the learning rate of each step that is compared, and notes."""
    steps = _steps(settings)
    if function is None:
        steps = [step for step in steps if step <= MOST_STEPS]
        rates = count_steps(schedule, steps[-1])
        return {step: rates[step - 1] for step in steps}, []
    return {step: float(function(step)) for step in steps}, _notes_of_step_0(function)


def _notes_of_step_0(function: Callable[[int], Any]) -> list[str]:
    """Return a note if step 0 divides by 0."""
    advice = "count steps from 1"
    try:
        rate = float(function(0))
    except (ZeroDivisionError, FloatingPointError):
        return [f"step 0 divides by 0: {advice}"]
    except Exception:  # a schedule may refuse it
        return []
    return [] if math.isfinite(rate) else [f"step 0 divides by 0 and gives {rate}: {advice}"]


def _notes_of_end(rates: dict[int, float], settings: ScheduleSettings) -> Iterator[str]:
    """Yield a note if the learning rate rises after the end of the training."""
    total = int(settings.total)
    later = [rate for step, rate in rates.items() if step > total]
    if total and later and max(later) > rates[total] + 1e-12:
        yield f"after step {total}, the last, it rises again"


def _report(
    name: str,
    kind: str,
    settings: ScheduleSettings,
    rates: dict[int, float],
    calls_count: bool,
    tolerance: float,
) -> OptimcheckReport:
    """Return which formula a series of rates follows."""
    if settings.total:
        rates = {step: rate for step, rate in rates.items() if step <= settings.total}
    own_variant = next(schedule_variants(kind, settings, calls_count))
    match = _match(kind, settings, rates, calls_count, tolerance)
    passed = match is not None and match.is_right
    if match is None:
        diagnosis = f"neither {TITLES[kind]} nor a fault of the table"
        diagnosis += _ratio_in_words(rates, own_variant, settings)
    else:
        diagnosis = str(match) if match.kind == kind else f"{match}, not {TITLES[kind]}"
    reference = own_variant if match is None or not match.is_right else match
    return OptimcheckReport(
        title=name,
        formula=FORMULAS[kind],
        passed=passed,
        diagnosis=diagnosis,
        called="an object that counts its steps" if calls_count else "a function of the step",
        settings={name: getattr(settings, name) for name in SETTINGS_OF_SCHEDULE[kind]},
        differences=[_difference(rates, reference, settings, tolerance)],
        tolerance=tolerance,
        check="schedulecheck",
        compared="value",
    )


def _match(
    kind: str,
    settings: ScheduleSettings,
    rates: dict[int, float],
    calls_count: bool,
    tolerance: float,
) -> ScheduleVariant | None:
    """Return the first form or fault that all rates follow: of its kind, or of another."""
    other_kinds = [other for other in FORMULAS if other != kind and _can_follow(other, settings)]
    for name in (kind, *other_kinds):
        for variant in schedule_variants(name, settings, calls_count):
            if _difference(rates, variant, settings, tolerance).error <= tolerance:
                return variant if name == kind else replace(variant, is_right=False)
    return None


def _can_follow(kind: str, settings: ScheduleSettings) -> bool:
    return all(getattr(settings, name) for name in NEEDS.get(kind, ()))


def _difference(
    rates: dict[int, float], variant: ScheduleVariant, settings: ScheduleSettings, tolerance: float
) -> Difference:
    """Return the first step whose rate differs, or the largest difference below the tolerance."""
    expected = {step: variant.value(step, settings) for step in rates}
    finite = [abs(value) for value in expected.values() if math.isfinite(value)]
    scale = max(finite, default=0.0) or 1.0
    largest = Difference("schedule", 0.0, 0, 0, (), 0.0, 0.0)
    for step, rate in rates.items():
        error = abs(rate - expected[step]) / scale
        error = math.inf if math.isnan(error) else error
        if error > largest.error:
            largest = Difference("schedule", error, step, 0, (), rate, expected[step])
        if largest.error > tolerance:
            break
    return largest


def _ratio_in_words(
    rates: dict[int, float], variant: ScheduleVariant, settings: ScheduleSettings
) -> str:
    """Return by which constant factor the rates differ from a formula; "" if by none."""
    ratios = [
        rate / variant.value(step, settings)
        for step, rate in rates.items()
        if variant.value(step, settings)
    ]
    if ratios and max(ratios) - min(ratios) <= 1e-9 * abs(max(ratios)):
        return f"; it is {ratios[0]:.6g} times its formula at each step"
    return ""
