"""How a schedule is called: a function of the step, or an object that counts its steps itself."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from npformer.core import describe
from npformer.proof.promises.argument_roles import COUNTERS
from npformer.proof.promises.setting_names import (
    is_number,
    numbers_of,
    plain_name,
    word_list,
    word_set,
)

SCHEDULE_NAMES: dict[str, list[str]] = {
    "d_model": word_list(
        "d_model dmodel model_size model_dim dim_model hidden_size embed_dim dim d"
    ),
    "warmup": word_list(
        "warmup warmup_steps n_warmup_steps num_warmup_steps warm_up warmup_iters warm_up_steps"
    ),
    "total": word_list(
        "total total_steps num_training_steps max_steps t_max max_iters lr_decay_iters n_steps "
        "total_iters num_steps epochs n_epochs max_epochs t_total steps"
    ),
    "final": word_list("final min_lr lr_min eta_min end_lr final_lr lr_end min_ratio final_ratio"),
    "step_size": word_list("step_size drop_every decay_every epochs_drop decay_steps every"),
    "gamma": word_list("gamma decay_rate decay drop drop_rate"),
    "lr": word_list(
        "base_lr max_lr lr_max peak_lr init_lr initial_lr lr0 initial_learning_rate lr "
        "learning_rate factor lr_mul scale eta_max"
    ),
}
"""The names of each setting, most certain first."""

DEFAULTS = {
    "lr": 0.5,
    "d_model": 64.0,
    "warmup": 10.0,
    "total": 40.0,
    "final": 0.0,
    "step_size": 7.0,
    "gamma": 0.5,
}
"""What is passed for a setting without a default."""

OPTIMIZER_NAMES = word_set("optimizer opt optim optimiser")

ATTRIBUTES_OF_OPTIMIZER = "optimizer", "_optimizer", "opt", "optim"

METHODS_OF_STEP = word_list("__call__ get_lr lr_at rate get_rate learning_rate lr value get call")
"""Methods that take the number of a step and return a learning rate."""

METHODS_THAT_COUNT = word_list(
    "step update step_and_update_lr update_lr _update_learning_rate update_learning_rate get_lr "
    "__call__"
)
"""Methods without arguments that count a step."""

PLACES_OF_LR = word_list("lr current_lr learning_rate _rate rate last_lr _last_lr")
"""Attributes of a schedule, or of its optimizer, that hold the present learning rate."""


def setting_of(name: str) -> str | None:
    """Return the setting that a name means; None if it means none."""
    plain = plain_name(name)
    return next((s for s, names in SCHEDULE_NAMES.items() if plain in names), None)


def read_schedule_settings(owner: Any) -> dict[str, float]:
    """Return the settings of a schedule that its attributes or defaults hold."""
    numbers = numbers_of(owner)
    settings: dict[str, float] = {}
    for setting, names in SCHEDULE_NAMES.items():
        name = next((name for name in names if name in numbers), None)
        if name is not None:
            settings[setting] = numbers.pop(name)
    return settings


def function_of_step(
    schedule: Any, settings: dict[str, float]
) -> tuple[Callable[[int], Any], dict[str, float]] | None:
    """Return a schedule as a function of the step, and what was passed to it; None if it counts."""
    if inspect.isroutine(schedule):
        return _bind(schedule, settings)
    for name in METHODS_OF_STEP:
        method = getattr(schedule, name, None)
        if inspect.ismethod(method) and _takes_a_step(method):
            return _bind(method, settings)
    return None


def _takes_a_step(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    names = [plain_name(p.name) for p in parameters if p.default is p.empty]
    return len(names) == 1 or any(name in COUNTERS for name in names)


def _bind(
    function: Callable[..., Any], settings: dict[str, float]
) -> tuple[Callable[[int], Any], dict[str, float]] | None:
    """Return a function of the step alone: its other arguments get settings."""
    parameters = inspect.signature(function).parameters
    step_name = next((n for n in parameters if plain_name(n) in COUNTERS), None)
    step_name = step_name or next((n for n in parameters if setting_of(n) is None), None)
    if step_name is None:
        return None
    other_parameters = [p for name, p in parameters.items() if name != step_name]
    values, passed = _values_of_settings(other_parameters, settings)
    is_positional = parameters[step_name].kind is inspect.Parameter.POSITIONAL_ONLY

    def rate_of(step: int) -> Any:
        if is_positional:
            return function(step, **values)
        return function(**{step_name: step}, **values)

    return rate_of, passed


def _values_of_settings(
    parameters: Iterable[inspect.Parameter], settings: dict[str, float]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return values for arguments that are settings, by their names, and by those of settings."""
    values: dict[str, Any] = {}
    passed: dict[str, float] = {}
    for parameter in parameters:
        setting = setting_of(parameter.name)
        if setting is None or (
            parameter.default is not parameter.empty and setting not in settings
        ):
            continue
        value = settings.get(setting, DEFAULTS[setting])
        passed[setting] = value
        values[parameter.name] = int(value) if float(value).is_integer() else value
    return values, passed


def make_schedule(kind: type, settings: dict[str, float]) -> Any:
    """Return a schedule of a class: its arguments are settings, and an optimizer with lr."""
    parameters = inspect.signature(kind).parameters.values()
    values, _ = _values_of_settings(parameters, settings)
    for parameter in parameters:
        if plain_name(parameter.name) in OPTIMIZER_NAMES:
            values[parameter.name] = _Optimizer()
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty and p.name not in values and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    if missing:
        raise TypeError(
            f"{kind.__name__} takes {missing[0]}, which cannot be told; expected a schedule, made "
            f"with its arguments: schedulecheck({kind.__name__}(...))"
        )
    return kind(**values)


class _Optimizer:
    """Stands in for the optimizer whose learning rate a schedule sets."""

    def __init__(self) -> None:
        self.lr = 0.0
        self.param_groups = [{"lr": 0.0}]

    def step(self) -> None:
        """Do nothing."""

    def zero_grad(self) -> None:
        """Do nothing."""


def count_steps(schedule: Any, steps: int) -> list[float]:
    """Return the learning rate of each step of a schedule that counts them itself."""
    for name in METHODS_THAT_COUNT:
        if inspect.ismethod(getattr(schedule, name, None)):
            counter = copy.deepcopy(schedule)
            method = getattr(counter, name)
            try:
                rates = [_present_rate(counter, method()) for _ in range(steps)]
            except Exception:  # of a user's code: the next name is tried
                continue
            if len(set(rates)) > 1:
                return rates
    raise TypeError(
        f"the schedule is {describe(schedule)}, which could not be called; expected a function of "
        "the step, or an object with __call__(step), get_lr(step) or step(). Write "
        "schedulecheck(lambda step: ..., kind='noam')"
    )


def _present_rate(schedule: Any, returned: Any) -> float:
    """Return what a method returned, or the learning rate that it set."""
    if isinstance(returned, list | tuple) and len(returned) == 1:
        returned = returned[0]
    if is_number(returned):
        return float(returned)
    owners = [getattr(schedule, name, None) for name in ATTRIBUTES_OF_OPTIMIZER]
    owners.append(schedule)
    for owner in owners:
        rates = _rates_in(owner)
        if rates:
            return next((rate for rate in rates if rate != 0.0), 0.0)
    raise TypeError("a step returned no number and set no lr")


def _rates_in(owner: Any) -> list[float]:
    """Return the learning rates that an object holds."""
    groups = getattr(owner, "param_groups", None)
    rates = [groups[0]["lr"]] if isinstance(groups, list) and groups else []
    rates += [getattr(owner, name, None) for name in PLACES_OF_LR]
    return [float(rate) for rate in rates if is_number(rate)]
