"""Which way an optimizer is called: tries the usual ones until one runs and moves something."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.proof.promises.argument_roles import Argument, arguments_of
from npformer.proof.promises.checked_arguments import copy_of
from npformer.proof.promises.packings import DictPacking, ListPacking, NamedPacking, Packing
from npformer.proof.promises.setting_names import word_list
from npformer.proof.promises.slots import Slot, slots_of_optimizer
from npformer.proof.promises.stand_ins import StandIn, stand_ins
from npformer.proof.promises.steppers import (
    ArgumentStepper,
    Arrays,
    SlotStepper,
    Stepper,
    setting_called,
)

SHAPES: list[tuple[int, ...]] = [(3, 4), (5,)]
"""Of the two parameters: neither can be broadcast to the other, so shared moments raise."""

METHODS = word_list(
    "step update update_params update_parameters update_weights update_param apply "
    "apply_gradients apply_grads apply_gradient optimize minimize optimise compute_update "
    "get_update get_updates calculate_update call __call__"
)
"""Methods that take a step, in the order in which they are tried."""


TAKEN_ONCE = "parameter", "layer", "pairs", "state"
"""Roles of a constructor's argument that may be the parameters."""


@dataclass
class Target:
    """What was handed to `optimcheck`: its name, how to make a new one, and how to call it."""

    name: str
    make: Callable[..., Any]
    methods: list[tuple[str, list[Argument]]]
    takes_parameters: bool


def target_of(target: Any, settings: Mapping[str, float]) -> Target:
    """Return a class, an object, an update function or a function that makes one as a `Target`."""
    if inspect.isclass(target):
        return _target_of_class(target, settings)
    if inspect.isroutine(target):
        arguments = arguments_of(target) or []
        if all(argument.is_optional for argument in arguments):
            optimizer = target()
            name = type(optimizer).__name__
            return Target(name, target, methods_of(type(optimizer), optimizer), False)
        return Target(target.__name__, lambda: target, [("", arguments)], False)
    name = type(target).__name__
    return Target(name, lambda: copy_of(target), methods_of(type(target), target), False)


def methods_of(kind: type, instance: Any = None) -> list[tuple[str, list[Argument]]]:
    """Return the methods of a class that may take a step, with their arguments."""
    methods = []
    for name in METHODS:
        if not any(name in vars(base) for base in kind.__mro__):
            continue  # a class itself has a __call__
        function = getattr(kind, name)
        if not inspect.isroutine(function):
            continue
        if instance is not None:
            function = getattr(instance, name)
        arguments = arguments_of(function)
        if arguments is not None:
            of_class = instance is None and inspect.isfunction(inspect.getattr_static(kind, name))
            methods.append((name, arguments[1:] if of_class else arguments))
    return methods


def _target_of_class(kind: type, settings: Mapping[str, float]) -> Target:
    """Return a class as a `Target`: its arguments are settings, and perhaps the parameters."""
    constructor = arguments_of(kind) or []
    takers = [a.name for a in constructor if not a.is_optional and a.role in TAKEN_ONCE]
    if len(takers) > 1:
        raise TypeError(
            f"{kind.__name__} takes {', '.join(takers)}, which cannot be told; expected an "
            "optimizer whose arguments are parameters and numbers. Write a function that makes "
            f"one: optimcheck(lambda: {kind.__name__}(...))"
        )

    def make(container: Any = None) -> Any:
        values = dict.fromkeys(takers, container)
        return kind(**values, **_settings_passed(constructor, settings))

    return Target(kind.__name__, make, methods_of(kind), bool(takers))


def _settings_passed(constructor: list[Argument], settings: Mapping[str, float]) -> dict[str, Any]:
    """Return the settings that a constructor gets: stated ones, and those without a default."""
    values: dict[str, Any] = {}
    for argument in constructor:
        setting, value = setting_called(argument.name, settings)
        is_stated = setting in settings or (setting == "betas" and "beta1" in settings)
        if argument.role == "setting" and (is_stated or not argument.is_optional):
            values[argument.name] = value
    return values


@dataclass
class OneForEach(Stepper):
    """A stepper for each parameter, each with an optimizer of its own."""

    stepper: ArgumentStepper = field(kw_only=True)

    def start(self, parameters: Arrays) -> None:
        """Begin a run with new optimizers."""
        self.steppers = [copy.copy(self.stepper) for _ in parameters]
        for stepper, parameter in zip(self.steppers, parameters, strict=True):
            stepper.start([parameter])
        self.optimizer = self.steppers[0].optimizer
        self.passed_settings = self.steppers[0].passed_settings

    def step(self, gradients: Arrays) -> Arrays:
        """Take a step of each."""
        pairs = zip(self.steppers, gradients, strict=True)
        return [stepper.step([gradient])[0] for stepper, gradient in pairs]


def steppers_of(
    target: Target, settings: Mapping[str, float], parameters: Any = None
) -> Iterator[Stepper]:
    """Yield the ways in which a target may be called."""
    for method, arguments in target.methods:
        roles = [a.role for a in arguments if not a.is_optional or a.role == "gradient"]
        call = f"{method or target.name}({', '.join(a.name for a in arguments)})"
        common = Common(call, target, method, arguments, settings)
        yield from _steppers_of_method(common, roles, parameters)


def _steppers_of_method(common: Common, roles: list[str], parameters: Any) -> Iterator[Stepper]:
    """Yield the ways in which a method may be called, by the roles of its arguments."""
    if "pairs" in roles or {"gradient", "parameter"} <= set(roles):
        yield from _argument_steppers(common, roles, parameters)
    elif "layer" in roles or "parameter" in roles:
        yield from _stand_in_steppers(common)
    else:
        yield from _holder_steppers(common, "gradient" in roles)
        if "gradient" in roles:
            yield from _argument_steppers(common, roles, parameters)


@dataclass
class Common:
    """What all steppers of a method share."""

    call: str
    target: Target
    method: str
    arguments: list[Argument]
    settings: Mapping[str, float]


def _argument_steppers(common: Common, roles: list[str], parameters: Any) -> Iterator[Stepper]:
    """Yield the steppers that pass parameters and gradients."""
    for packing in _packings(roles, parameters):
        stepper = ArgumentStepper(
            f"{common.call}, with {packing.words}",
            common.target.make,
            common.method,
            common.arguments,
            common.settings,
            packing=packing,
            takes_parameters=common.target.takes_parameters,
        )
        if isinstance(parameters, Mapping | list):
            values = list(parameters.values()) if isinstance(parameters, Mapping) else parameters
            stepper.shapes = [np.shape(x) for x in values]
        elif isinstance(parameters, np.ndarray):
            stepper.shapes = [parameters.shape]
        yield stepper
        if one := one_for_each(stepper):
            yield one


def one_for_each(stepper: Stepper) -> OneForEach | None:
    """Return the same with an optimizer for each parameter, if it takes one array for each call."""
    if not isinstance(stepper, ArgumentStepper) or stepper.packing.is_container:
        return None
    return OneForEach(
        f"{stepper.words}, and an optimizer for each parameter",
        stepper.make,
        stepper.method,
        stepper.arguments,
        stepper.settings,
        shapes=stepper.shapes,
        stepper=stepper,
    )


COUNTING_METHODS = word_list(
    "step next next_step increment increment_step increment_t tick update_t"
)
"""Methods without arguments that may count a step, where another updates the parameters."""


def alternatives_to(stepper: Stepper) -> Iterator[Stepper]:
    """Yield other ways to call an optimizer whose steps do not follow its formula."""
    if isinstance(stepper, OneForEach):
        return
    for name in COUNTING_METHODS:
        counting_method = getattr(stepper.optimizer, name, None)
        if name == stepper.method or not inspect.ismethod(counting_method):
            continue
        if all(argument.is_optional for argument in arguments_of(counting_method) or []):
            words = f"{stepper.words}; {name}() once for each step"
            before = (*stepper.hooks_before, name)
            yield replace_stepper(stepper, f"{words}, before it", hooks_before=before)
            after = (*stepper.hooks_after, name)
            yield replace_stepper(stepper, f"{words}, after it", hooks_after=after)
    alone = one_for_each(stepper)
    if alone is not None:
        yield alone


def replace_stepper(stepper: Stepper, words: str, **hooks: tuple[str, ...]) -> Stepper:
    """Return a copy of a stepper with other hooks."""
    changed = copy.copy(stepper)
    changed.words = words
    for name, hook_names in hooks.items():
        setattr(changed, name, hook_names)
    return changed


def _packings(roles: list[str], parameters: Any) -> list[Packing]:
    """Return the ways to pass parameters: those of `parameters`, if the caller has some."""
    n_parameters = roles.count("parameter")
    if n_parameters > 1:
        fits = n_parameters == roles.count("gradient") == len(SHAPES)
        return [NamedPacking()] if fits else []
    in_pairs = "pairs" in roles
    packings: list[Packing] = []
    if not in_pairs and (parameters is None or isinstance(parameters, Mapping)):
        packings += _dict_packings(tuple(parameters or ()))
    if parameters is None or isinstance(parameters, list):
        packings.append(ListPacking())
    if not in_pairs and (parameters is None or isinstance(parameters, np.ndarray)):
        packings.append(Packing())
    return packings


def _dict_packings(names: tuple[str, ...]) -> list[Packing]:
    """Return the packings of dicts, by what the gradients are called."""
    words = {"": "dicts", "d": "dicts with dW1 for W1", "grad_": "dicts with grad_W1 for W1"}
    return [DictPacking(words[prefix], prefix=prefix, names=names) for prefix in words]


def _stand_in_steppers(common: Common) -> Iterator[Stepper]:
    """Yield the steppers that pass layers, or parameters with their gradients."""

    def stepper(index: int, words: str, form: str) -> SlotStepper:
        def build() -> tuple[Any, list[Slot], list[tuple[Any, ...]]]:
            stand_in = list(stand_ins(SHAPES))[index]
            arguments = _forms_of(stand_in)[form]
            if common.target.takes_parameters:
                optimizer = common.target.make(stand_in.items)
            else:
                optimizer = common.target.make()
            return optimizer, stand_in.slots, arguments

        return _slot_stepper(common, f"{common.call}, with {words}", build, False, SHAPES)

    for index, stand_in in enumerate(stand_ins(SHAPES)):
        for form in _forms_of(stand_in):
            yield stepper(index, f"{stand_in.words}{form}", form)


def _slot_stepper(
    common: Common,
    words: str,
    build: Callable[[], tuple[Any, list[Slot], list[tuple[Any, ...]]]],
    passes_gradients: bool,
    shapes: list[tuple[int, ...]],
) -> SlotStepper:
    return SlotStepper(
        words,
        common.target.make,
        common.method,
        common.arguments,
        common.settings,
        shapes=shapes,
        build=build,
        passes_gradients=passes_gradients,
    )


class Model:
    """A stand-in for a model of layers or parameters."""

    def __init__(self, items: list[Any]) -> None:
        self.layers = items

    def parameters(self) -> list[Any]:
        """Return its items."""
        return self.layers


def _forms_of(stand_in: StandIn) -> dict[str, list[tuple[Any, ...]]]:
    """Return the arguments of each call: an item, a list of all, or a model of them."""
    return {
        "": [(item,) for item in stand_in.items],
        ", in a list": [(stand_in.items,)],
        ", in a model": [(Model(stand_in.items),)],
    }


def _holder_steppers(common: Common, passes_gradients: bool) -> Iterator[Stepper]:
    """Yield the steppers for optimizers that hold their parameters."""
    if not common.target.takes_parameters:
        yield from _slot_steppers(common, common.target.make, passes_gradients, common.call)
        return
    arrays = [np.zeros(shape) for shape in SHAPES]
    for packing in (DictPacking(), ListPacking()) if passes_gradients else ():

        def make_bare(packing: Packing = packing) -> Any:
            return common.target.make(packing.pack([x.copy() for x in arrays]))

        words = f"{common.call}, made with {packing.words}"
        yield from _slot_steppers(common, make_bare, passes_gradients, words)
    for index, stand_in in enumerate(stand_ins(SHAPES)):
        for form in _forms_of(stand_in):

            def build(
                index: int = index, form: str = form
            ) -> tuple[Any, list[Slot], list[tuple[Any, ...]]]:
                new = list(stand_ins(SHAPES))[index]
                container = _forms_of(new)[form][0][0]
                return common.target.make(container), new.slots, [()]

            if form or len(stand_in.items) == 1:
                words = f"{common.call}, made with {stand_in.words}{form}"
                yield _slot_stepper(common, words, build, passes_gradients, SHAPES)


def _slot_steppers(
    common: Common, make: Callable[[], Any], passes_gradients: bool, words: str
) -> Iterator[Stepper]:
    try:
        slots = slots_of_optimizer(make())
    except Exception:  # of a user's constructor, with arguments of another form
        return
    if not slots or (slots[0].gradient_owner is None and not passes_gradients):
        return

    def build() -> tuple[Any, list[Slot], list[tuple[Any, ...]]]:
        optimizer = make()
        return optimizer, slots_of_optimizer(optimizer), [()]

    shapes = [np.shape(slot.read()) for slot in slots]
    yield _slot_stepper(common, words, build, passes_gradients, shapes)
