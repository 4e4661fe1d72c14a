"""gradcheck of other people's code: the derivative decides, the rest is reported."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import describe
from npformer.proof.blind_spots import coinciding_sizes
from npformer.proof.comparison import Comparison, Settings
from npformer.proof.foreign.causes import find_late_gradients, find_missing_paths
from npformer.proof.foreign.gradient_places import GradientPlaces
from npformer.proof.foreign.libraries import LIBRARIES, is_autograd_function, library_of
from npformer.proof.foreign.libraries.library_function import library_problem
from npformer.proof.foreign.protocol import CHANGES_INPUT, observe_protocol
from npformer.proof.foreign.readings import FunctionPair, Reading, readings_of
from npformer.proof.foreign.stateful import StatefulObject
from npformer.proof.foreign.stateful_problem import stateful_problem
from npformer.proof.foreign.value_and_gradient import (
    ValueAndGradient,
    loss_method,
    value_and_gradient_problem,
)
from npformer.proof.naming import numbers_of
from npformer.proof.pair_names import looks_like_target
from npformer.proof.problem import Problem, is_array_of_floats
from npformer.proof.report import GradcheckReport
from npformer.proof.results import gradients_of


def check_foreign(
    target: Any,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    params: Mapping[str, str] | None,
    wrt: Sequence[str] | None,
    settings: Settings,
) -> GradcheckReport:
    """Check an object with state, or a function that returns (loss, gradient)."""
    if isinstance(target, type) and is_autograd_function(target):
        apply: Any = target.apply  # type: ignore[attr-defined]
        target = apply  # which runs its static passes
    if isinstance(target, type):
        name = target.__name__
        raise TypeError(
            f"target is the class {name}; expected an object of it: gradcheck({name}(...), x)"
        )
    if library := library_of(target, inputs):
        return _check_library(library, target, inputs, options, wrt, settings)
    if readings := readings_of(target):
        return _check_readings(readings, target, inputs, options, params, wrt, settings)
    function = target if callable(target) else loss_method(target)
    if function is None:
        raise TypeError(
            f"target is {describe(target)}; expected a layer, a function with a backward pass, a "
            "pair of functions, an object with forward and backward, or a function that returns "
            "(loss, gradient): gradcheck(layer, x), gradcheck((forward, backward), x)"
        )
    return _check_value_and_gradient(function, inputs, options, params, wrt, settings)


def _check_library(
    library: str,
    target: Any,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    wrt: Sequence[str] | None,
    settings: Settings,
) -> GradcheckReport:
    """Check what a library such as torch differentiates by itself."""
    function = LIBRARIES[library](target, inputs, options)
    comparison = _compare(library_problem(function, wrt), settings, numbers_of(options))
    missing = [
        f"{name} gets no gradient from {library}, though y depends on it"
        for name in comparison.without_gradient
    ]
    version = getattr(function.library, "__version__", "")
    comparison.notes.append(f"differentiated by {library} {version}".rstrip())
    return comparison.report([*comparison.broken_rules, *missing], derivative_alone=True)


def check_derivative(
    pair: tuple[Any, Any],
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    params: Mapping[str, str] | None,
    wrt: Sequence[str] | None,
    settings: Settings,
) -> GradcheckReport:
    """Check a function and its derivative, which takes the same arguments."""
    return check_foreign(FunctionPair(*pair), inputs, options, params, wrt, settings)


def _check_readings(
    readings: Sequence[Reading],
    target: Any,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    params: Mapping[str, str] | None,
    wrt: Sequence[str] | None,
    settings: Settings,
) -> GradcheckReport:
    """Return the report of the first reading that is right, or else of the first that runs."""
    reports: list[GradcheckReport] = []
    errors: list[Exception] = []
    for reading in readings:
        if reports and reading.is_fallback:
            continue
        try:
            report = _check_object(target, reading, inputs, options, params, wrt, settings)
        except Exception as error:  # in other people's code, which does not take these arguments
            errors.append(error)
            continue
        if report.passed:
            return report
        reports.append(report)
    if not reports:
        raise errors[0]
    return reports[0]


def _check_object(
    target: Any,
    reading: Reading,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    params: Mapping[str, str] | None,
    wrt: Sequence[str] | None,
    settings: Settings,
) -> GradcheckReport:
    obj = StatefulObject(target, reading, inputs, options, seed=settings.seed)
    problem, places = stateful_problem(obj, params, wrt)
    comparison = _compare(problem, settings, numbers_of(target) | numbers_of(options))
    missing = [
        _describe_missing(name, problem.arrays[name].shape, places)
        for name in comparison.without_gradient
    ]
    wrong_inputs = [t.name for t in comparison.wrong_tensors() if t.name in problem.inputs]
    if places.from_updates:
        comparison.notes += find_late_gradients(problem, wrong_inputs, comparison.v)
    comparison.notes += find_missing_paths(problem, wrong_inputs, comparison.v)
    protocol = observe_protocol(obj, places, comparison.v)
    if CHANGES_INPUT in protocol and comparison.wrong_tensors():
        comparison.notes.append(
            "the forward pass changes x: if the backward pass reads the x that was kept, it reads "
            "the changed one"
        )
    comparison.notes += [*obj.notes, *_describe_constants(places)]
    comparison.notes += _describe_inputs_without_gradient(obj, places)
    return comparison.report(
        [*comparison.broken_rules, *missing], protocol=tuple(protocol), derivative_alone=True
    )


def _compare(problem: Problem, settings: Settings, numbers: Mapping[str, float]) -> Comparison:
    """Compare the gradients of a problem, without a complex step."""
    if not problem.arrays:
        raise TypeError(
            f"{problem.title} has no gradient that was found: neither of an array of floats that "
            "it was given, nor of one inside it. Say where they are: params={'W': 'dW'}, with "
            "paths such as \"grads['W']\" or 'return[1]'"
        )
    comparison = Comparison(problem, replace(settings, complex_tolerance=None))
    y, cache = problem.forward()
    y = np.array(y)
    if not np.isfinite(y).all():
        comparison.broken_rules.append("the forward pass gave NaN or infinity")
    gradients = gradients_of(problem, comparison.v.astype(y.dtype), cache)
    comparison.run(y, gradients, numbers)
    comparison.notes += filter(None, [comparison.rounded])
    arrays = {name: problem.arrays[name] for name in problem.inputs if name in problem.arrays}
    comparison.notes += coinciding_sizes(arrays, also_two=True)
    return comparison


def _describe_missing(name: str, shape: tuple[int, ...], places: GradientPlaces) -> str:
    """Say that a parameter has no gradient, and which array of the backward pass may be it."""
    fitting = [place for place, array in places.unmatched.items() if array.shape == shape]
    begin = f"{name} has no gradient, though y depends on it: it would never be trained"
    if fitting:
        return (
            f"{begin}. {fitting[0]} has its shape; if that is its gradient, name it, and those of "
            f"all others: params={{{name!r}: {fitting[0]!r}, ...}}"
        )
    return (
        f"{begin}. If its gradient is somewhere else, name it, and those of all others: "
        f"params={{{name!r}: 'PATH', ...}}"
    )


def _describe_inputs_without_gradient(obj: StatefulObject, places: GradientPlaces) -> list[str]:
    """Return a note for inputs of floats for which the backward pass returned nothing."""
    floats = [name for name, value in obj.call.values.items() if is_array_of_floats(value)]
    missing = [name for name in floats if name not in places.of_inputs]
    if places.of_inputs:
        missing = [name for name in missing if not looks_like_target(name)]
    if not missing:
        return []
    return [
        f"{', '.join(missing)} got no gradient and was taken for a constant. The first layer of a "
        "model may do without; any other one has to return it"
    ]


def _describe_constants(places: GradientPlaces) -> list[str]:
    if places.unnamed:
        return [
            f"{', '.join(places.unnamed)} was not checked, though y depends on it: params names no "
            "gradient of it"
        ]
    if not places.constants:
        return []
    return [
        f"{', '.join(places.constants)} got no gradient and was taken for a constant; if it is "
        f"trained, say where its gradient is: params={{{places.constants[0]!r}: 'PATH'}}"
    ]


def _check_value_and_gradient(
    function: Any,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    params: Mapping[str, str] | None,
    wrt: Sequence[str] | None,
    settings: Settings,
) -> GradcheckReport:
    target = ValueAndGradient(function, inputs, options, seed=settings.seed)
    problem, constants = value_and_gradient_problem(target, params, wrt)
    comparison = _compare(problem, settings, numbers_of(target) | numbers_of(options))
    comparison.notes += target.notes
    if constants:
        comparison.notes.append(f"{', '.join(constants)} got no gradient: taken for constants")
    missing = [
        f"{name} has no gradient, though the loss depends on it: it would never be trained"
        for name in comparison.without_gradient
    ]
    return comparison.report([*comparison.broken_rules, *missing], derivative_alone=True)
