"""Invariants of source code, which is parsed but not run: of files, or of the methods of layers."""

import ast
import functools
import inspect
import math
import textwrap
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from npformer.core import Layer
from npformer.proof.report import TOLERANCE

Files = Mapping[str, str]
"""Source files: ``{path: text}``, with paths relative to the repository."""

_parse = functools.cache(ast.parse)


def _nodes(files: Files | Layer) -> Iterator[tuple[str, ast.AST]]:
    """Yield (where it comes from, syntax node) for files, or for methods of a model's layers.

    ``__init__`` is left out, because it works with sizes rather than arrays.
    """
    if isinstance(files, Layer):
        files = {
            f"{kind.__name__}.{name}": textwrap.dedent(inspect.getsource(method))
            for kind in dict.fromkeys(type(layer) for _, layer in files.layers())
            for name, method in vars(kind).items()
            if inspect.isfunction(method) and name != "__init__"
        }
    for name, text in sorted(files.items()):
        for node in ast.walk(_parse(text)):
            yield f"{name}, line {getattr(node, 'lineno', 0)}", node


def no_power_of_an_array(files: Files | Layer) -> None:
    """Products are written out in the mathematics: x * x * x, not x**3."""
    for where, node in _nodes(files):
        operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
        called = isinstance(node, ast.Attribute) and node.attr in ("power", "float_power")
        if operator or called:
            raise AssertionError(f"{where}: {ast.unparse(node)}")


def no_bare_except(files: Files) -> None:
    """Every `except` says what it catches."""
    for where, node in _nodes(files):
        assert not isinstance(node, ast.ExceptHandler) or node.type is not None, where


def cupy_is_imported_in_one_place(files: Files) -> None:
    """Only one file imports CuPy, so only one file decides what happens without a GPU."""
    for where, node in _nodes(files):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if {name.partition(".")[0] for name in names} & {"cupy", "cupyx"}:
            assert where.startswith("npformer/core/cupy/backend.py,"), where


def gradients_are_checked_in_earnest(files: Files) -> None:
    """No gradient test is skipped, expected to fail, or given a tolerance above 1e-6."""
    assert TOLERANCE <= 1e-6, "the default tolerance is above 1e-6"
    for where, node in _nodes(files):
        for keyword in node.keywords if _calls_gradcheck(node) else []:
            if keyword.arg == "tolerance":
                tolerance = getattr(keyword.value, "value", math.inf)
                assert tolerance <= 1e-6, f"{where}: {ast.unparse(node)}"
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            marks = {_last(d) for d in node.decorator_list} & {"skip", "skipif", "xfail"}
            skips = marks and any(map(_calls_gradcheck, ast.walk(node)))
            assert not skips, f"{where}: {node.name}"


def _calls_gradcheck(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and _last(node) == "gradcheck"


def _last(node: ast.expr) -> str:
    """Return the last name of a dotted expression, called or not."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
