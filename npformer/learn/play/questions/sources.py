"""The lines that a layer runs, forward and backward: those of `functional`, or else its own."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import npformer
from npformer import functional as F
from npformer.mixers import Attention

CALL = re.compile(r"\bF\.([a-z]\w*)\(")

METHODS = {
    "forward": ("forward", "mix", "heads"),
    "backward": ("backward", "mix_backward", "heads_backward"),
}
"""The methods in which a layer, or a mixer, computes."""

ASIDE = ("split_heads", "merge_heads", "linear", "linear_backward")
"""Functions that are not what a layer is about, if it calls another one."""


@cache
def lines_of(kind: Any, way: str) -> tuple[str, str, str]:
    """Return the name of a layer's function, its source without the docstring, and its file.

    `way` is "forward" or "backward".
    """
    function = _function(kind, way)
    source = textwrap.dedent(inspect.getsource(function))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef)
    lines = source.splitlines()
    if ast.get_docstring(definition) is not None:
        first = definition.body[0]
        del lines[first.lineno - 1 : first.end_lineno]
    return function.__name__, "\n".join(lines), place_of(function)


def place_of(thing: Any) -> str:
    """Return the path of the file that defines a function or a class."""
    root = Path(npformer.__file__).parent.parent
    file = Path(inspect.getsourcefile(thing) or "")
    return (file.relative_to(root) if file.is_relative_to(root) else Path(file.name)).as_posix()


def _function(kind: Any, way: str) -> Callable[..., Any]:
    """Return the pair's function that a class of layers is about, or else its own method."""
    if issubclass(kind, Attention):
        attention = "scaled_dot_product_attention"
        return _of_functional(attention if way == "forward" else f"{attention}_backward")
    named: list[str] = []
    for each in kind.__mro__:
        for method in METHODS[way]:
            if method in vars(each):
                named += CALL.findall(inspect.getsource(vars(each)[method]))
        if named:
            break
    named.sort(key=lambda name: name in ASIDE)  # a stable sort: those come last
    if way == "backward":
        named.sort(key=lambda name: not name.endswith("_backward"))
    known = [name for name in named if hasattr(F, name)]
    if known:
        return _of_functional(known[0])
    own: Callable[..., Any] = inspect.unwrap(getattr(kind, way))
    return own


def _of_functional(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = inspect.unwrap(getattr(F, name))
    return found
