"""Check one definition of a module: build it, find inputs that it takes, and run the checks."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from npformer.core import Layer
from npformer.proof.foreign.libraries import is_autograd_function, library_of
from npformer.proof.foreign.readings import method_names
from npformer.proof.foreign.value_and_gradient import loss_method
from npformer.proof.gradcheck import gradcheck
from npformer.proof.problem import parameters_as
from npformer.proof.promises import checks_for
from npformer.proof.promises.applicable import Check
from npformer.proof.report import GradcheckError, GradcheckReport
from npformer.proof.trials.arguments import (
    UnknownArgument,
    constructor_arguments,
    write_call,
)
from npformer.proof.trials.common_causes import keep_common_causes
from npformer.proof.trials.definitions import (
    Definition,
    definitions_in,
    has_passes,
    is_unwritten,
)
from npformer.proof.trials.inputs import (
    Inputs,
    in_other_mode,
    required_names,
    requires_mask,
    takes_mask,
    trial_inputs,
    with_masks,
)

MOST_SHAPES = 2
"""How many shapes of x a definition is checked at, if it takes so many."""


@dataclass
class Trial:
    """A definition, how it was built and called, and what came of it."""

    title: str  # the call that built it, or the name of the function
    reports: list[tuple[str, Any]] = field(default_factory=list)  # (what was tried, report)
    limits: list[str] = field(default_factory=list)  # inputs of other shapes that it is not for
    untested: list[str] = field(default_factory=list)  # masks and modes that could not be tried
    reason: str = ""  # why nothing could be tried
    advice: str = ""  # what to write

    @property
    def passed(self) -> bool:
        """Whether all that was tried is right."""
        return all(report.passed for _, report in self.reports)

    def observations(self) -> list[str]:
        """Return what the passes do besides, each observation once."""
        lines = [line for _, report in self.reports for line in getattr(report, "protocol", ())]
        return list(dict.fromkeys(lines))

    def notes(self) -> list[str]:
        """Return what was not compared, or not at these values, each note once."""
        lines = [line for _, report in self.reports for line in getattr(report, "notes", ())]
        return list(dict.fromkeys(lines))


def try_module(module: ModuleType) -> Iterator[Trial]:
    """Yield a trial of each layer, loss, pair, optimizer and schedule that a module defines."""
    for definition in definitions_in(module):
        trial = _try(definition)
        if trial is not None:
            yield trial


def _try(definition: Definition) -> Trial | None:
    """Return a trial, or None if there is nothing to check in a definition."""
    promises = [] if definition.kind == "pair" else checks_for(definition.target)
    if promises:
        trial = Trial(definition.name)
        _run_promises(trial, promises)
        if not _is_layer(definition):
            return trial
    elif not has_passes(definition) or is_unwritten(definition):
        return None
    else:
        trial = Trial(definition.name)
    _try_passes(trial, definition)
    return trial


def _is_layer(definition: Definition) -> bool:
    return definition.kind == "class" and has_passes(definition)


def _run_promises(trial: Trial, checks: list[Check]) -> None:
    for title, check in checks:
        try:
            trial.reports.append((title, check()))
        except AssertionError as error:
            trial.reports.append((title, error.report))  # type: ignore[attr-defined]
        except (TypeError, ValueError) as error:
            trial.reason = trial.reason or str(error)


def _try_passes(trial: Trial, definition: Definition) -> None:
    """Build an object, and run gradcheck at the shapes that its forward pass takes."""
    target: Any = definition.target
    arguments: dict[str, Any] = {}
    if definition.kind == "class":
        built = _build(trial, definition)
        if built is None:
            return
        target, arguments = built
    reasons: list[str] = []
    inputs_checked = _check_inputs(trial, definition, target, arguments, reasons)
    _set_limits_aside(trial)
    trial.reports = keep_common_causes(trial.reports)
    if not inputs_checked:
        trial.reason = _most_telling(reasons)
        trial.advice = f"nf.gradcheck({_subject(trial, definition)}, {_names_of_inputs(target)})"
    elif definition.kind == "class":
        _run_promises(trial, checks_for(target))


def _check_inputs(
    trial: Trial,
    definition: Definition,
    target: Any,
    arguments: dict[str, Any],
    reasons: list[str],
) -> list[Inputs]:
    """Run gradcheck with inputs that the passes take, and return these inputs."""
    forward = _forward_of(target)
    name = definition.name.lower()
    takes_ids = "embed" in name and "position" not in name
    inputs_checked: list[Inputs] = []
    for inputs in trial_inputs(forward, arguments, definition.name, takes_ids):
        if not _is_wanted(inputs, inputs_checked):
            continue
        if _check_at(trial, target, inputs, reasons):
            inputs_checked.append(inputs)
            _check_variants(trial, target, forward, inputs)
        elif requires_mask(forward) and _check_masks(trial, target, forward, inputs):
            inputs_checked.append(inputs)
    if takes_mask(forward) and not any("mask" in what for what, _ in trial.reports):
        trial.untested.append("a mask: those of five shapes were not taken")
    return inputs_checked


def _is_wanted(inputs: Inputs, inputs_checked: list[Inputs]) -> bool:
    """Whether inputs are to be tried after those that were checked."""
    if not inputs_checked:
        return True
    if len(inputs_checked) == MOST_SHAPES or inputs.has_guessed_labels:
        return inputs.has_guessed_labels and _are_all_guessed(inputs_checked, inputs)
    has_common_shape = not all(checked.is_rare for checked in inputs_checked)
    is_vector = len(inputs.shape) == 1 or inputs.shape[1:] == (1,)
    if inputs.is_rare and (has_common_shape or is_vector):
        return False
    return inputs.words not in {checked.words for checked in inputs_checked}


def _are_all_guessed(inputs_checked: list[Inputs], inputs: Inputs) -> bool:
    """Whether no classes were taken for labels, so that numbers are tried at another shape."""
    if len(inputs_checked) == MOST_SHAPES or inputs.is_rare:
        return False
    is_new = inputs.words not in {checked.words for checked in inputs_checked}
    return is_new and all(checked.has_guessed_labels for checked in inputs_checked)


def _check_variants(trial: Trial, target: Any, forward: Any, inputs: Inputs) -> None:
    """Check the same inputs with a mask, and in training or evaluation, whichever is not tried.

    If something is wrong already, it would be said again.
    """
    _, report = trial.reports[-1]
    if not report.passed:
        return
    _check_masks(trial, target, forward, inputs)
    for other in in_other_mode(forward, inputs):
        reasons: list[str] = []
        if not _check_at(trial, target, other, reasons, expects_numbers=True):
            trial.untested += reasons


def _check_masks(trial: Trial, target: Any, forward: Any, inputs: Inputs) -> bool:
    """Check the passes with the first mask that they take; return whether they take one."""
    return any(
        _check_at(trial, target, masked, [], expects_numbers=True)
        for masked in with_masks(forward, inputs)
    )


def _most_telling(reasons: list[str]) -> str:
    """Return the reason that says what was expected, or else the first one."""
    return next((reason for reason in reasons if "; expected" in reason), reasons[0])


def _subject(trial: Trial, definition: Definition) -> str:
    """Return what is handed to gradcheck, in Python."""
    if definition.kind != "pair":
        return trial.title
    forward, backward = definition.target
    return f"({forward.__name__}, {backward.__name__})"


def _names_of_inputs(target: Any) -> str:
    return ", ".join(required_names(_forward_of(target)))


def _set_limits_aside(trial: Trial) -> None:
    """Take a shape at which only the shapes of gradients differ for one that a layer is not for.

    It is so only if the layer is right at another shape: batch norm is for x of two axes.
    """
    checked = [(what, report) for what, report in trial.reports if hasattr(report, "tensors")]
    if not any(report.passed for _, report in checked):
        return
    for what, report in checked:
        if not report.passed and not report.wrong_tensors():
            trial.reports.remove((what, report))
            trial.limits.append(f"{what}: there {report.broken_rules[0]}")


def _build(trial: Trial, definition: Definition) -> tuple[Any, dict[str, Any]] | None:
    """Return an object of a class and the arguments it was built with, or None with a reason."""
    name = definition.name
    try:
        arguments = constructor_arguments(definition.target)
        trial.title = write_call(name, arguments)
        return definition.target(**arguments), arguments
    except UnknownArgument as error:
        trial.reason = f"its argument {error} cannot be told from its name"
        trial.advice = f"nf.gradcheck({name}({error}=...), {_names_for_class(definition)})"
    except Exception as error:  # in other people's code
        trial.reason = f"{trial.title} raised {type(error).__name__}: {error}"
        trial.advice = f"nf.gradcheck({name}(...), {_names_for_class(definition)})"
    return None


def _names_for_class(definition: Definition) -> str:
    """Return the names of the arguments of a class's forward pass, without self."""
    names = method_names(definition.target)
    if names is None:
        return "x"
    return ", ".join(required_names(getattr(definition.target, names[0]))[1:] or ["x"])


def _forward_of(target: Any) -> Any:
    """Return the function whose arguments are the inputs."""
    if isinstance(target, tuple):
        return target[0]
    if isinstance(target, Layer):
        return (lambda a, b: None) if target.n_inputs == 2 else (lambda x: None)
    owner = getattr(target, "__self__", None)
    if inspect.isclass(owner) and is_autograd_function(owner):
        passes: Any = owner
        return partial(passes.forward, None)  # without its ctx
    names = method_names(target)
    if library_of(target, ()):
        return getattr(target, "forward", target)
    if names is not None:
        return getattr(target, names[0])
    method = loss_method(target)
    return target if inspect.isroutine(target) or method is None else method


def _check_at(
    trial: Trial,
    target: Any,
    inputs: Inputs,
    reasons: list[str],
    expects_numbers: bool = False,
) -> bool:
    """Run gradcheck with these inputs; return whether the passes took them.

    With `expects_numbers`, a forward pass that gives NaN has not taken them: a mask of its own kind
    may hide all.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), _in_float64(target):
            warnings.simplefilter("ignore")
            report = gradcheck(target, *inputs.values.values())
    except GradcheckError as error:
        report = error.report
    except Exception as error:  # in other people's code, which does not take these inputs
        reasons.append(f"{inputs.words}: {type(error).__name__}: {error}")
        return False
    if expects_numbers and any("NaN" in rule for rule in report.broken_rules):
        reasons.append(f"{inputs.words}: the forward pass gave NaN")
        return False
    lost = _lost_parameters(trial, report)
    if lost:
        trial.limits.append(
            f"{inputs.words}: there the gradient of {', '.join(lost)} has another shape"
        )
        return False
    trial.reports.append((inputs.words, report))
    return True


def _lost_parameters(trial: Trial, report: GradcheckReport) -> list[str]:
    """Return the parameters that have a gradient at the first shape, and none at another one.

    A layer that sums over axes 0 and 1 is for x of three axes: with two, its sum is one number.
    This is a limit, and not an error, unless another gradient is wrong there.
    """
    reports = [report for _, report in trial.reports if isinstance(report, GradcheckReport)]
    if not reports:
        return []
    first_report = reports[0]
    wrong_at_first = {tensor.name for tensor in first_report.wrong_tensors()}
    if any(tensor.name not in wrong_at_first for tensor in report.wrong_tensors()):
        return []
    compared = {tensor.name for tensor in report.tensors}
    return [tensor.name for tensor in first_report.tensors if tensor.name not in compared]


def _in_float64(target: Any) -> AbstractContextManager[None]:
    """Let a layer of npformer, which most are built in float32, be in float64."""
    if isinstance(target, Layer):
        return parameters_as(target, lambda flat: flat.astype("float64"))
    return nullcontext()
