"""Find the layers, losses, pairs of functions, optimizers and schedules that a module defines."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from npformer.core import Layer
from npformer.proof.foreign.libraries import is_autograd_function, library_of
from npformer.proof.foreign.readings import method_names
from npformer.proof.foreign.value_and_gradient import loss_method
from npformer.proof.pair_names import backward_names

LOSS = re.compile(r"loss|cost|entropy|mse|criterion|objective|value_and_grad", re.IGNORECASE)
"""Names of functions that may return (loss, gradient)."""


@dataclass(frozen=True)
class Definition:
    """Something in a module that may be checked."""

    name: str
    kind: str  # "class", "pair" or "function"
    target: Any  # a class, (forward, backward), or a function


def definitions_in(module: ModuleType) -> list[Definition]:
    """Return what a module defines itself, in the order of its lines."""
    defined_here = {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("__")
    }
    classes = {name: value for name, value in defined_here.items() if inspect.isclass(value)}
    functions = {name: value for name, value in defined_here.items() if inspect.isfunction(value)}
    pairs = dict(_pairs_among(functions))
    backward_names = {backward for _, backward in pairs.values()}
    definitions = [Definition(name, "class", value) for name, value in classes.items()]
    definitions += _applied(classes)
    for name, function in functions.items():
        if name in pairs:
            _, backward = pairs[name]
            target = function, functions[backward]
            definitions.append(Definition(name, "pair", target))
        elif name not in backward_names:
            definitions.append(Definition(name, "function", function))
    return sorted(definitions, key=_line_of)


def _applied(classes: Mapping[str, Any]) -> list[Definition]:
    """Return the applications of each ``torch.autograd.Function``, if no module applies them."""
    functions = {name: kind for name, kind in classes.items() if is_autograd_function(kind)}
    if any(_is_of_library(kind) for name, kind in classes.items() if name not in functions):
        return []
    return [Definition(f"{n}.apply", "function", kind.apply) for n, kind in functions.items()]


def _pairs_among(
    functions: Mapping[str, Callable[..., Any]],
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (name of a forward function, (itself, name of its backward function))."""
    for name in functions:
        for backward in backward_names(name):
            if backward in functions:
                yield name, (name, backward)
                break


def _line_of(definition: Definition) -> int:
    target = definition.target[0] if definition.kind == "pair" else definition.target
    try:
        return inspect.getsourcelines(target)[1]
    except (OSError, TypeError):
        return 0


def has_passes(definition: Definition) -> bool:
    """Whether a definition has a derivative to check: by its methods, or by its name."""
    target = definition.target
    if definition.kind == "pair":
        return True
    if definition.kind == "function":
        return bool(LOSS.search(definition.name)) or bool(library_of(target, ()))
    if is_autograd_function(target):
        return False  # it is checked in the modules that apply it
    if issubclass(target, Layer) or library_of(target, ()) or _is_of_library(target):
        return True
    return method_names(target) is not None or loss_method(target) is not None


def _is_of_library(kind: type) -> bool:
    """Whether a class is a module of a library, such as ``torch.nn.Module``."""
    packages = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if not packages & {"torch", "flax", "equinox", "mlx"}:
        return False
    return any("forward" in vars(base) or "__call__" in vars(base) for base in kind.__mro__)


def is_unwritten(definition: Definition) -> bool:
    """Whether a class is a base whose passes are left to others: empty, or not implemented."""
    target = definition.target
    if definition.kind != "class":
        return False
    if inspect.isabstract(target):
        return True
    names = method_names(target) or ()
    method = loss_method(target) if not names else None
    passes = [getattr(target, name) for name in names] or [method]
    return any(_has_no_body(function) for function in passes)


def _has_no_body(function: Any) -> bool:
    """Whether a function has a docstring, `pass`, `...` or NotImplementedError alone."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        (tree,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    if not isinstance(tree, ast.FunctionDef):
        return False
    return all(_is_no_statement(statement) for statement in tree.body)


def _is_no_statement(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return "NotImplemented" in ast.unparse(statement)
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Pass) or is_constant
