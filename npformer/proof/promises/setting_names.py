"""Where an optimizer keeps its learning rate, betas and epsilon: the usual names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np


def word_list(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


SETTING_NAMES: dict[str, list[str]] = {
    "lr": word_list(
        "current_learning_rate current_lr lr learning_rate learningrate step_size lrate l_rate "
        "learnrate eta alpha rate"
    ),
    "beta1": ["beta1", "beta_1", "b1", "betas.0", "beta.0"],
    "beta2": ["beta2", "beta_2", "b2", "betas.1", "beta.1"],
    "eps": ["eps", "epsilon", "e", "delta", "small"],
    "momentum": ["momentum", "mu", "mom", "beta", "gamma", "rho", "beta1", "beta_1"],
    "rho": word_list("rho decay_rate decayrate beta gamma beta2 beta_2 smoothing alpha decay"),
    "weight_decay": ["weight_decay", "wd", "weightdecay", "lambda_", "lamda", "lmbda", "l2"],
}
"""The names of each setting, most certain first. ``betas.0`` is the first of a pair."""

SETTINGS_OF_KIND = {
    "sgd": ["weight_decay"],
    "momentum": ["momentum", "weight_decay"],
    "nesterov": ["momentum", "weight_decay"],
    "adagrad": ["eps", "weight_decay"],
    "rmsprop": ["rho", "eps", "weight_decay"],
    "adam": ["beta1", "beta2", "eps", "weight_decay"],
    "adamw": ["beta1", "beta2", "eps", "weight_decay"],
    "amsgrad": ["beta1", "beta2", "eps", "weight_decay"],
    "lion": ["beta1", "beta2", "weight_decay"],
}
"""What a kind has beside lr."""

GROUPS = "config", "defaults", "hyperparameters", "hyperparams", "hparams", "options", "settings"
"""Dictionaries of settings, as attributes."""


def is_number(value: Any) -> bool:
    """Return whether a value is one real number, of Python or NumPy."""
    if isinstance(value, bool | np.bool_):
        return False
    return isinstance(value, int | float | np.integer | np.floating)


def plain_name(name: str) -> str:
    """Return a name without underscores in front and without Python's prefix of a class."""
    return re.sub(r"^_[A-Za-z0-9]+__(?=\w)", "", name).lstrip("_").lower()


def numbers_of(owner: Any) -> dict[str, float]:
    """Return the numbers that an object, a function or a dict holds, by plain name."""
    numbers: dict[str, float] = {}
    for name, value in _values_of(owner).items():
        if is_number(value):
            numbers.setdefault(plain_name(name), float(value))
        elif isinstance(value, tuple | list) and 0 < len(value) <= 2:
            pair = {f"{plain_name(name)}.{i}": v for i, v in enumerate(value) if is_number(v)}
            numbers.update({key: float(v) for key, v in pair.items()})
    return numbers


def _values_of(owner: Any) -> dict[str, Any]:
    """Return attributes, or a function's defaults, or a dict's items."""
    if isinstance(owner, Mapping):
        return {str(name): value for name, value in owner.items()}
    if inspect.isroutine(owner):
        return _defaults_of(owner)
    of_class = {n: v for k in reversed(type(owner).__mro__) for n, v in vars(k).items()}
    values = {name: value for name, value in of_class.items() if is_number(value)}
    values.update(getattr(owner, "__dict__", {}))
    for group in _groups_of(owner):
        values = {**{str(key): value for key, value in group.items()}, **values}
    current_lr = getattr(owner, "current_lr", None)
    if callable(current_lr):
        with suppress(Exception):  # of a user's code
            values["current_lr"] = current_lr()
    return values


def _defaults_of(function: Any) -> dict[str, Any]:
    with suppress(TypeError, ValueError):
        parameters = inspect.signature(function).parameters
        return {name: p.default for name, p in parameters.items()}
    return {}


def _groups_of(owner: Any) -> Iterator[Mapping[Any, Any]]:
    """Yield the dicts of settings that an object has."""
    groups = [getattr(owner, name, None) for name in GROUPS]
    groups_of_torch = getattr(owner, "param_groups", None)
    if isinstance(groups_of_torch, list) and groups_of_torch:
        groups.append(groups_of_torch[0])
    for group in groups:
        if isinstance(group, Mapping):
            yield group


def pick_settings(numbers: Mapping[str, float], kind: str) -> dict[str, float]:
    """Return lr and the settings of a kind from numbers by name; each name serves once."""
    free_numbers = dict(numbers)
    settings: dict[str, float] = {}
    for setting in ("lr", *SETTINGS_OF_KIND[kind]):
        for name in SETTING_NAMES[setting]:
            if name in free_numbers:
                settings[setting] = free_numbers.pop(name)
                break
    return settings


def flag_of(owner: Any, name: str) -> bool:
    """Return whether an attribute of this plain name is True."""
    values = _values_of(owner)
    return any(plain_name(key) == name and value is True for key, value in values.items())
