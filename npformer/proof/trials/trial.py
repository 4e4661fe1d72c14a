"""Check one definition of a module: build it, find inputs that it takes, and run the checks."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from npformer.core import Layer
from npformer.proof.foreign.libraries import library_of
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
    trial_inputs,
    write_call,
    write_shapes,
)
from npformer.proof.trials.definitions import Definition, definitions_in, has_passes

MOST_SHAPES = 2
"""How many shapes of x a definition is checked at, if it takes so many."""


@dataclass
class Trial:
    """A definition, how it was built and called, and what came of it."""

    title: str  # the call that built it, or the name of the function
    reports: list[tuple[str, Any]] = field(default_factory=list)  # (what was tried, report)
    limits: list[str] = field(default_factory=list)  # inputs of other shapes that it is not for
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
    elif not has_passes(definition):
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
    name = definition.name.lower()
    takes_ids = "embed" in name and "position" not in name
    reasons: list[str] = []
    shapes_checked: set[str] = set()
    for inputs in trial_inputs(_forward_of(target), arguments, takes_ids):
        shapes = write_shapes(inputs)
        is_vector = np.ndim(next(iter(inputs.values()))) == 1
        enough = len(shapes_checked) >= (1 if is_vector else MOST_SHAPES)
        if enough or shapes in shapes_checked:
            continue
        if _check_at(trial, target, inputs, reasons):
            shapes_checked.add(shapes)
    _set_limits_aside(trial)
    if not shapes_checked:
        trial.reason = reasons[0]
        trial.advice = f"nf.gradcheck({trial.title}, x)"
    elif definition.kind == "class":
        _run_promises(trial, checks_for(target))


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
        trial.advice = f"nf.gradcheck({name}({error}=...), x)"
    except Exception as error:  # in other people's code
        trial.reason = f"{trial.title} raised {type(error).__name__}: {error}"
        trial.advice = f"nf.gradcheck({name}(...), x)"
    return None


def _forward_of(target: Any) -> Any:
    """Return the function whose arguments are the inputs."""
    if isinstance(target, tuple):
        return target[0]
    if isinstance(target, Layer):
        return (lambda a, b: None) if target.n_inputs == 2 else (lambda x: None)
    names = method_names(target)
    if library_of(target, ()):
        return getattr(target, "forward", target)
    if names is not None:
        return getattr(target, names[0])
    method = loss_method(target)
    return target if inspect.isroutine(target) or method is None else method


def _check_at(trial: Trial, target: Any, inputs: dict[str, Any], reasons: list[str]) -> bool:
    """Run gradcheck with these inputs; return whether the passes took them."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), _in_float64(target):
            warnings.simplefilter("ignore")
            report = gradcheck(target, *inputs.values())
    except GradcheckError as error:
        report = error.report
    except Exception as error:  # in other people's code, which does not take these inputs
        reasons.append(f"{write_shapes(inputs)}: {type(error).__name__}: {error}")
        return False
    lost = _lost_parameters(trial, report)
    if lost:
        trial.limits.append(
            f"{write_shapes(inputs)}: there the gradient of {', '.join(lost)} has another shape"
        )
        return False
    trial.reports.append((write_shapes(inputs), report))
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
