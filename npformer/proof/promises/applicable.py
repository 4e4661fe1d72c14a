"""Which checks of promises apply to an object that a file defines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from npformer.core import Layer
from npformer.proof.foreign.pass_names import FORWARD_NAMES
from npformer.proof.promises.argument_roles import COUNTERS, arguments_of
from npformer.proof.promises.conventions import methods_of
from npformer.proof.promises.dropoutcheck import dropoutcheck
from npformer.proof.promises.evaluationcheck import evaluationcheck
from npformer.proof.promises.kinds import kind_in_name
from npformer.proof.promises.layer_calls import LayerCalls, calls_of
from npformer.proof.promises.maskcheck import maskcheck
from npformer.proof.promises.optimcheck import optimcheck
from npformer.proof.promises.optimizer_report import OptimcheckReport
from npformer.proof.promises.promise import PromiseReport
from npformer.proof.promises.schedule_calls import METHODS_OF_STEP, METHODS_THAT_COUNT, setting_of
from npformer.proof.promises.schedulecheck import kind_of_schedule, says_schedule, schedulecheck
from npformer.proof.promises.setting_names import is_number, plain_name, word_list

Check = tuple[str, Callable[[], OptimcheckReport | PromiseReport]]
"""The title of a check, and the check: it returns a report, or raises with one."""

WIDTHS = word_list(
    "d_model embed_dim dim model_dim n_embd hidden_size embed_size d_in in_features input_dim "
    "hidden_dim n_features num_features features d"
)
"""Attributes that hold the width of x."""


def checks_for(obj: Any) -> list[Check]:
    """Return the checks that apply to a class, an object or a function, each with its title.

    A check is called without arguments; it returns a report or raises an error that has one:
    OptimcheckError for optimizers and schedules, PromiseError for dropout, masks and evaluation.
    TypeError says what could not be told of the object. Layers must be objects, as only they have
    a width; classes are taken for optimizers and schedules, functions also for dropout, by their
    names.

    Parameters
    ----------
    obj : class, object or function

    Returns
    -------
    list of (str, callable)
        Empty if nothing applies.
    """
    name = _name_of(obj)
    if not _is_layer(obj) and is_optimizer(obj, name):
        return _checks_of_optimizer(obj, name)
    if not _is_layer(obj) and is_schedule(obj, name):
        return [(f"{name}: each step against the schedule's formula", partial(schedulecheck, obj))]
    if is_dropout(obj, name):
        return [(f"{name}: what dropout promises", partial(dropoutcheck, obj))]
    return _checks_of_layer(obj, name)


def _name_of(obj: Any) -> str:
    return str(getattr(obj, "__name__", type(obj).__name__))


def _is_layer(obj: Any) -> bool:
    kind = obj if inspect.isclass(obj) else type(obj)
    return any(hasattr(kind, method) for method in FORWARD_NAMES if method != "__call__")


def is_optimizer(obj: Any, name: str) -> bool:
    """Return whether the name says a kind of optimizer, and a step can be taken."""
    if kind_in_name(name) is None:
        return False
    if inspect.isroutine(obj):
        arguments = arguments_of(obj) or []
        roles = {argument.role for argument in arguments}
        return "gradient" in roles
    kind = obj if inspect.isclass(obj) else type(obj)
    return any(method not in ("call", "__call__") for method, _ in methods_of(kind))


def _checks_of_optimizer(obj: Any, name: str) -> list[Check]:
    """Return the check, for a class that has weight decay a second time with some."""
    checks: list[Check] = [(f"{name}: each step against its formula", partial(optimcheck, obj))]
    arguments = (arguments_of(obj) or []) if inspect.isclass(obj) else []
    if any(plain_name(argument.name) == "weight_decay" for argument in arguments):
        with_decay = partial(optimcheck, obj, weight_decay=0.1)
        checks.append((f"{name}: each step with weight decay", with_decay))
    return checks


def is_schedule(obj: Any, name: str) -> bool:
    """Return whether the name says a schedule, and a step or settings fit."""
    if kind_of_schedule(name) is None and not says_schedule(name):
        return False
    if inspect.isroutine(obj):
        names = [plain_name(argument.name) for argument in arguments_of(obj) or []]
        has_setting = any(setting_of(name) for name in names)
        return any(name in COUNTERS for name in names) and has_setting
    kind = obj if inspect.isclass(obj) else type(obj)
    methods = {*METHODS_OF_STEP, *METHODS_THAT_COUNT}
    settings = {setting_of(argument.name) for argument in arguments_of(kind) or []}
    has_method = any(inspect.isroutine(vars(kind).get(method)) for method in methods)
    return has_method and bool(settings & {"warmup", "total", "step_size", "gamma"})


def is_dropout(obj: Any, name: str) -> bool:
    """Return whether the name says dropout of entries, and it is a layer or a forward function."""
    plain = name.lower().replace("_", "")
    if "dropout" not in plain or "token" in plain or "word" in plain or "backward" in plain:
        return False
    if inspect.isclass(obj):
        return False  # its object is checked
    return _is_layer(obj) or inspect.isroutine(obj)


def _checks_of_layer(obj: Any, name: str) -> list[Check]:
    """Return the checks of an object with forward whose width its attributes say."""
    if inspect.isclass(obj) or inspect.isroutine(obj) or not _is_layer(obj):
        return []
    width = width_of(obj)
    if width is None:
        return []
    calls = calls_of(obj)
    dtypes = {str(x.dtype) for x in obj.parameters().values()} if isinstance(obj, Layer) else set()
    dtype = "float32" if "float32" in dtypes else "float64"
    x = np.random.default_rng(0).normal(size=(2, 5, width)).astype(dtype)
    checks: list[Check] = []
    n_inputs = _n_inputs_with_a_mask(calls, name)
    if n_inputs in (1, 3):  # x, or queries, keys and values
        masked = partial(maskcheck, obj, *[x] * n_inputs)
        checks.append((f"{name}: what its mask promises", masked))
    if getattr(obj, "causal", False) is True or "causal" in name.lower():
        causal = partial(maskcheck, obj, x, causal=True)
        checks.append((f"{name}: no position sees later ones", causal))
    if calls.can_switch and not isinstance(obj, Layer):
        evaluation = partial(evaluationcheck, obj, x)
        checks.append((f"{name}: what evaluation promises", evaluation))
    return checks


def _n_inputs_with_a_mask(calls: LayerCalls, name: str) -> int:
    """Return how many inputs a forward pass takes beside a mask; 0 if it takes no mask."""
    if isinstance(calls.layer, Layer):
        return int("attention" in name.lower() and calls.layer.n_inputs == 1)
    if calls.mask_name is None:
        return 0
    required = [argument for argument in arguments_of(calls.run) or [] if not argument.is_optional]
    return sum(argument.name != calls.mask_name for argument in required)


def width_of(layer: Any) -> int | None:
    """Return the width of x: an attribute says it, or the first matrix; None if neither."""
    values = {plain_name(name): value for name, value in getattr(layer, "__dict__", {}).items()}
    for name in WIDTHS:
        value: Any = values.get(name)
        if is_number(value) and float(value).is_integer() and value > 0:
            return int(value)
    arrays = [getattr(value, "value", value) for value in values.values()]
    matrices = [x for x in arrays if isinstance(x, np.ndarray) and x.ndim == 2]
    return int(matrices[0].shape[0]) if matrices else None
