"""How an optimizer is called: each stepper takes arrays and gradients, and returns new arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.proof.promises.argument_roles import Argument
from npformer.proof.promises.packings import Packing
from npformer.proof.promises.setting_names import SETTING_NAMES, plain_name
from npformer.proof.promises.slots import Slot

Arrays = list[np.ndarray]

INITIALIZERS = "initialize", "initialise", "init", "init_state", "initialize_parameters", "setup"
"""Methods that take the parameters before the first step."""

HOOKS_BEFORE = "pre_update_params", "pre_update", "before_step", "pre_step"
HOOKS_AFTER = "post_update_params", "post_update", "after_step", "post_step"
"""Methods without arguments that are called around the updates of one step."""

DEFAULTS = {
    "lr": 0.01,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "momentum": 0.9,
    "rho": 0.9,
    "weight_decay": 0.0,
}
"""What is passed for a setting that has no default of its own."""


NOT_PASSED = object()
"""Stands for an argument that is left to its default."""


def setting_called(name: str, settings: Mapping[str, float]) -> tuple[str, Any]:
    """Return the setting that an argument's name means, and its value."""
    plain = plain_name(name)
    if plain == "betas":
        return "betas", tuple(settings.get(b, DEFAULTS[b]) for b in ("beta1", "beta2"))
    for setting, names in SETTING_NAMES.items():
        if plain in names:
            return setting, settings.get(setting, DEFAULTS[setting])
    return "lr", settings.get("lr", DEFAULTS["lr"])


@dataclass
class Stepper:
    """What all steppers have: an optimizer for each run, its method, and the count of steps."""

    words: str
    """How it is called, such as ``step(params, grads) with dicts``."""
    make: Callable[..., Any]
    method: str
    """The method's name; "" for a function."""
    arguments: list[Argument]
    settings: Mapping[str, float]
    """Settings that the caller of `optimcheck` gave."""
    optimizer: Any = field(default=None, init=False)
    passed_settings: dict[str, float] = field(default_factory=dict, init=False)
    """What was passed with a step, because the method asks for it."""
    steps: int = field(default=0, init=False)

    shapes: list[tuple[int, ...]] | None = None
    """Of the parameters that it holds; None if it takes any."""
    hooks_before: tuple[str, ...] = HOOKS_BEFORE
    hooks_after: tuple[str, ...] = HOOKS_AFTER

    def start(self, parameters: Arrays) -> None:
        """Begin a run with a new optimizer."""
        raise NotImplementedError

    def step(self, gradients: Arrays) -> Arrays:
        """Take a step; return copies of all parameters."""
        self.steps += 1
        self.call_hooks(self.hooks_before)
        self.call_all(gradients)
        self.call_hooks(self.hooks_after)
        return self.read()

    def call_all(self, gradients: Arrays) -> None:
        """Update each parameter once."""
        raise NotImplementedError

    def read(self) -> Arrays:
        """Return copies of the present parameters."""
        raise NotImplementedError

    def call_hooks(self, names: tuple[str, ...]) -> None:
        """Call the methods of these names that the optimizer has."""
        for name in names:
            hook = getattr(self.optimizer, name, None) if self.method else None
            if callable(hook):
                hook()

    def call(self, values: Mapping[str, Any]) -> Any:
        """Call the method with values by argument name, and with t and settings if it asks."""
        passed: list[Any] = []
        named: dict[str, Any] = {}
        for argument in self.arguments:
            value = self._value_of(argument, values)
            if value is NOT_PASSED:
                continue
            if argument.is_optional or named:
                named[argument.name] = value
            else:
                passed.append(value)
        function = getattr(self.optimizer, self.method) if self.method else self.optimizer
        return function(*passed, **named)

    def _value_of(self, argument: Argument, values: Mapping[str, Any]) -> Any:
        """Return what is passed for an argument, or NOT_PASSED."""
        if argument.name in values:
            return values[argument.name]
        if argument.role == "counter":
            return self.steps
        if argument.role != "setting":
            return NOT_PASSED
        setting, value = setting_called(argument.name, self.settings)
        if argument.is_optional and setting not in self.settings:
            return NOT_PASSED
        if not isinstance(value, tuple):
            self.passed_settings[setting] = value
        return value


@dataclass
class ArgumentStepper(Stepper):
    """Parameters and gradients are arguments; new parameters are returned, or old ones changed."""

    packing: Packing = field(kw_only=True)
    takes_parameters: bool = field(default=False, kw_only=True)
    """Whether the optimizer's constructor takes the parameters."""
    subtracts: bool | None = field(default=None, init=False)
    """Whether what it returns is subtracted from the parameters; for `update(grads)` only."""
    changes_gradients: bool = field(default=False, init=False)

    def start(self, parameters: Arrays) -> None:
        """Begin a run with a new optimizer."""
        self.arrays = [x.copy() for x in parameters]
        self.steps = 0
        self.states: dict[tuple[int, ...], dict[str, Any]] = {}
        self.container = self.packing.pack(self.arrays)
        self.optimizer = self.make(self.container) if self.takes_parameters else self.make()
        self._initialize()

    def _initialize(self) -> None:
        """Call the method that prepares the moments of parameters, if there is one."""
        for name in INITIALIZERS:
            method = getattr(self.optimizer, name, None) if self.method else None
            if inspect.ismethod(method):
                with suppress(Exception):  # it may be for something else
                    method(self.container)

    def read(self) -> Arrays:
        """Return copies of the present parameters."""
        return [np.array(x) for x in self.arrays]

    def call_all(self, gradients: Arrays) -> None:
        """Call the method once for all parameters, or once for each."""
        for group in self.packing.groups(len(gradients)):
            self._call_group(group, [gradients[i].copy() for i in group])

    def _call_group(self, group: tuple[int, ...], gradients: Arrays) -> None:
        before = [self.arrays[i].copy() for i in group]
        original_gradients = [g.copy() for g in gradients]
        container = self._container_of(group)
        values = self.packing.values(self.arguments, container, gradients, group)
        states = self._states_of(group, gradients)
        result = self.call({**values, **states})
        self.changes_gradients |= not _all_equal(gradients, original_gradients)
        new = self._new_parameters(result, container, before, original_gradients, states)
        for i, array in zip(group, new, strict=True):
            self.arrays[i] = array
        if len(group) == len(self.arrays) and self.packing.is_container:
            self.packing.refill(self.container, self.arrays)

    @property
    def returns_changes(self) -> bool:
        """Whether it gets gradients alone, and returns what is subtracted from parameters."""
        return not any(argument.role in ("parameter", "pairs") for argument in self.arguments)

    def _states_of(self, group: tuple[int, ...], gradients: Arrays) -> dict[str, Any]:
        """Return the states that are passed with a group: at first zeros, where one must be."""
        states = self.states.setdefault(group, {})
        for argument in self.arguments:
            if argument.role == "state" and not argument.is_optional:
                states.setdefault(argument.name, self.packing.state(argument.name, gradients))
        return states

    def _container_of(self, group: tuple[int, ...]) -> Any:
        if self.packing.is_container:
            return self.container
        return self.packing.pack([self.arrays[i] for i in group])

    def _new_parameters(
        self,
        result: Any,
        container: Any,
        before: Arrays,
        gradients: Arrays,
        states: dict[str, Any],
    ) -> Arrays:
        """Return the parameters after a call: what was changed in place, or was returned."""
        returned = self.packing.unpack(result, before)
        if isinstance(result, tuple | list) and len(result) > 0:
            returned = returned or self.packing.unpack(result[0], before)
            self._keep_states(list(result), states)
        if self.returns_changes:
            return self._apply(returned, before, gradients)
        present = self.packing.unpack(container, before)
        if present is not None and not _all_equal(present, before):
            return [np.array(x) for x in present]
        return [np.array(x) for x in (returned or before)]

    def _keep_states(self, returned: list[Any], states: dict[str, Any]) -> None:
        """Take what was returned behind the parameters for the states of the next call."""
        names = [argument.name for argument in self.arguments if argument.role == "state"]
        if names and len(returned) > len(names):
            states.update(zip(names, returned[-len(names) :], strict=True))

    def _apply(self, changes: Arrays | None, before: Arrays, gradients: Arrays) -> Arrays:
        """Return parameters after what `update(grads)` returned was subtracted or added."""
        if changes is None:
            return before
        if self.subtracts is None:
            products = [np.sum(c * g) for c, g in zip(changes, gradients, strict=True)]
            self.subtracts = bool(np.sum(products) >= 0.0)
        sign = -1.0 if self.subtracts else 1.0
        return [x + sign * c for x, c in zip(before, changes, strict=True)]


def _all_equal(first: Arrays, second: Arrays) -> bool:
    return all(
        x.shape == y.shape and np.array_equal(x, y, equal_nan=True)
        for x, y in zip(first, second, strict=True)
    )


@dataclass
class SlotStepper(Stepper):
    """Parameters lie in objects beside their gradients: the optimizer's own, or layers.

    `build` returns a new optimizer, the slots, and the arguments of each call; a call whose
    arguments are None gets the gradients.
    """

    build: Callable[[], tuple[Any, list[Slot], list[tuple[Any, ...]]]] = field(kw_only=True)
    passes_gradients: bool = field(default=False, kw_only=True)

    def start(self, parameters: Arrays) -> None:
        """Begin a run with a new optimizer."""
        self.steps = 0
        self.optimizer, self.slots, self.calls = self.build()
        for slot, value in zip(self.slots, parameters, strict=True):
            slot.write(value.copy())

    def read(self) -> Arrays:
        """Return copies of the present parameters."""
        return [np.array(slot.read()) for slot in self.slots]

    def call_all(self, gradients: Arrays) -> None:
        """Put each gradient into its slot, in its dtype, and call the method."""
        gradients = [
            np.array(gradient, dtype=slot.read().dtype)
            for slot, gradient in zip(self.slots, gradients, strict=True)
        ]
        for slot, gradient in zip(self.slots, gradients, strict=True):
            slot.write_gradient(gradient)
        names = [a.name for a in self.arguments if a.role in ("layer", "parameter", "pairs")]
        gradient_names = [a.name for a in self.arguments if a.role == "gradient"]
        for call in self.calls:
            values = dict(zip(names, call, strict=False))
            if self.passes_gradients:
                values[gradient_names[0]] = self._gradients_like_slots(gradients)
            self.call(values)

    def _gradients_like_slots(self, gradients: Arrays) -> Any:
        """Return gradients in a dict or a list, as the optimizer holds its parameters."""
        if isinstance(self.slots[0].owner, Mapping):
            pairs = zip(self.slots, gradients, strict=True)
            return {slot.key: gradient for slot, gradient in pairs}
        return list(gradients)


@dataclass
class OwnStepper(Stepper):
    """The caller wrote how a step is taken: ``step(optimizer, parameters, gradients)``."""

    own_step: Callable[[Any, Arrays, Arrays], Any] = field(kw_only=True)

    def start(self, parameters: Arrays) -> None:
        """Begin a run with a new optimizer."""
        self.steps = 0
        self.optimizer = self.make()
        self.arrays = [x.copy() for x in parameters]

    def read(self) -> Arrays:
        """Return copies of the present parameters."""
        return [np.array(x) for x in self.arrays]

    def call_all(self, gradients: Arrays) -> None:
        """Call what the caller wrote."""
        result = self.own_step(self.optimizer, self.arrays, [g.copy() for g in gradients])
        if result is not None:
            with suppress(TypeError):
                self.arrays = [np.array(x) for x in result]
