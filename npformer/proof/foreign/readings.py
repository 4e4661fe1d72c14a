"""Which methods of an object are its passes, and what its backward pass takes.

Most backward passes take dy. That of a loss, or of an activation that has a derivative, may take
what the forward pass takes: loss(p, t) beside gradient(p, t), or f(x) beside derivative(x). Where
the names leave two readings open, a code is right if it is right by one of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from npformer.proof.foreign.pass_names import (
    BACKWARD_NAMES,
    FORWARD_NAMES,
    GRADIENT_WORDS,
    VALUE_NAMES,
)
from npformer.proof.pair_names import (
    GRADIENT_OF_OUTPUT,
    required_names,
    takes_forward_arguments,
)
from npformer.proof.pairs import name_of


@dataclass(frozen=True)
class Reading:
    """The names of the passes, and what they are taken for."""

    forward_name: str
    backward_name: str
    takes_arguments: bool = False  # the backward pass takes what the forward pass takes
    takes_output: bool = False  # the derivative takes the output, as s * (1 - s) of a sigmoid
    takes_kept_output: bool = False  # instead of the first argument: probabilities, for logits
    of_mean: bool = False  # it is the gradient of the mean of a loss for each sample
    is_fallback: bool = False  # for objects of which no other reading runs

    @property
    def note(self) -> str:
        """What the report says about a reading in which the backward pass is not given dy."""
        if self.takes_output:
            return "the derivative was given the output of the function, not its argument"
        if self.takes_kept_output:
            return f"{self.backward_name} was given the output that {self.forward_name} has kept"
        if self.of_mean:
            return f"{self.backward_name} was taken for the gradient of the mean loss"
        return ""


class FunctionPair:
    """A function and its derivative, as an object with two passes."""

    def __init__(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        self.forward = forward
        self.backward = backward
        self.title = name_of(forward)


def is_derivative_pair(forward: Callable[..., Any], backward: Callable[..., Any]) -> bool:
    """Whether the second function takes the arguments of the first one, not dy."""
    return takes_forward_arguments(forward, backward, name_of(backward)) and not (
        GRADIENT_OF_OUTPUT.search(required_names(backward)[0])
    )


def readings_of(obj: Any) -> list[Reading]:
    """Return the readings of an object, the likeliest first; none if it lacks a pass."""
    losses = [
        loss
        for value_name, gradient_name in _values_with_gradients(obj)
        for loss in _also_of_mean(Reading(value_name, gradient_name, takes_arguments=True))
    ]
    forward_name = _first_method(obj, FORWARD_NAMES)
    backward_name = _first_method(obj, BACKWARD_NAMES)
    if not forward_name or not backward_name:
        return losses
    by_output_gradient = Reading(forward_name, backward_name)
    forward, backward = getattr(obj, forward_name), getattr(obj, backward_name)
    if not takes_forward_arguments(forward, backward, name_of(backward)):
        return [*losses, by_output_gradient]
    by_arguments = _readings_by_arguments(
        by_output_gradient, forward, backward, has_value=bool(losses)
    )
    of_forward, of_backward = required_names(forward), required_names(backward)
    if of_forward == of_backward:
        return [*losses, *by_arguments]
    if GRADIENT_OF_OUTPUT.search(of_backward[0]):
        return [by_output_gradient, *losses, *by_arguments]
    return [*losses, *by_arguments, by_output_gradient]


def _readings_by_arguments(
    by_output_gradient: Reading,
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    has_value: bool,
) -> list[Reading]:
    """Return the readings of a backward pass that takes what the forward pass takes.

    `has_value`: the object also has a method that returns the loss of all samples.
    """
    by_arguments = replace(by_output_gradient, takes_arguments=True, is_fallback=has_value)
    readings = [*_also_of_mean(by_arguments)]
    if has_value:
        readings.pop(0)  # the value is mostly the mean
    of_forward, of_backward = required_names(forward), required_names(backward)
    if of_backward != of_forward and len(of_backward) == 1:
        readings.append(replace(by_output_gradient, takes_output=True))
    elif of_backward != of_forward:
        readings.append(replace(by_output_gradient, takes_arguments=True, takes_kept_output=True))
    return readings


def method_names(obj: Any) -> tuple[str, str] | None:
    """Return the names of the forward and the backward pass of an object, or None."""
    readings = readings_of(obj)
    return (readings[0].forward_name, readings[0].backward_name) if readings else None


def _also_of_mean(reading: Reading) -> Iterator[Reading]:
    """Yield a reading, and again for the mean of the losses of all samples."""
    yield reading
    yield replace(reading, of_mean=True)


def _values_with_gradients(obj: Any) -> Iterator[tuple[str, str]]:
    """Yield methods that return a loss, each with one of the same arguments for its gradient."""
    for value_name in VALUE_NAMES:
        value: Any = getattr(obj, value_name, None)
        gradient_names = [form.format(value_name) for form in GRADIENT_WORDS]
        for name in (*BACKWARD_NAMES, *gradient_names) if callable(value) else ():
            gradient = getattr(obj, name, None)
            if callable(gradient) and takes_forward_arguments(value, gradient, name):
                yield value_name, name
                break


def _first_method(obj: Any, names: tuple[str, ...]) -> str:
    return next((name for name in names if callable(getattr(obj, name, None))), "")
