"""The names of what a function returns, read in its source: ``return loss, dWxh, dWhh, hprev``."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from npformer.proof.foreign.gradient_names import is_gradient_by_very_name
from npformer.proof.problem import is_array_of_floats


def names_of_gradients(function: Any) -> dict[str, str]:
    """Return the names of what a function returns after its loss, by their places.

    Places are those of what is left without the loss: ``return`` of ``return loss, dW``,
    ``return[0]`` of ``return loss, dW, db`` and of ``return loss, (dW, db)``. What has no name,
    such as ``hs[-1]``, is left out. There are none if the source is missing or returns differ.
    """
    tuples = [node.value for node in _returns_of(function) if isinstance(node.value, ast.Tuple)]
    if not tuples or any(ast.dump(value) != ast.dump(tuples[0]) for value in tuples):
        return {}
    _, *gradients = tuples[0].elts
    if len(gradients) == 1 and isinstance(gradients[0], ast.Tuple | ast.List):
        gradients = gradients[0].elts
    elif len(gradients) == 1:
        return {"return": gradients[0].id} if isinstance(gradients[0], ast.Name) else {}
    return {
        f"return[{index}]": gradient.id
        for index, gradient in enumerate(gradients)
        if isinstance(gradient, ast.Name)
    }


def _returns_of(function: Any) -> Iterator[ast.Return]:
    """Yield the return statements of a function, without those of functions inside it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # without a source, or inside an expression
        return
    nodes = [statement for node in tree.body[:1] for statement in getattr(node, "body", [])]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return):
            yield node
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            nodes += ast.iter_child_nodes(node)


def match_names(paths: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the place of the gradient of each array whose very name, such as dW, was returned."""
    matches: dict[str, str] = {}
    for path in paths:
        places = [p for p, name in names.items() if is_gradient_by_very_name(name, path)]
        if len(places) == 1 and places[0] not in matches.values():
            matches[path] = places[0]
    return matches


def trained_globals(function: Any, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the global arrays that a function reads and returns the gradients of, as copies."""
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    values = {name: function.__globals__.get(name) for name in code.co_names}
    arrays = {
        name: value.astype(np.float64)
        for name, value in values.items()
        if is_array_of_floats(value)
    }
    return {name: arrays[name] for name in match_names(arrays, names)}
