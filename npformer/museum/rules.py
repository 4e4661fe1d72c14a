"""Rules for source text, which is read and not run: invariants too, of files or of layers' code."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
from collections.abc import Iterator, Mapping

from npformer.core import Layer
from npformer.museum.invariants import invariant
from npformer.proof.gradcheck import TOLERANCE

Files = Mapping[str, str]
"""Source files: ``{path: text}``, paths below the repository."""


def parsed(files: Files | Layer) -> Iterator[tuple[str, ast.Module]]:
    """Yield (name, syntax tree) of every file, or of every method of the layers in a model.

    Parameters
    ----------
    files : mapping of str to str, or Layer
        Of a layer all methods are read but its ``__init__``, where numbers are no arrays.
    """
    if not isinstance(files, Layer):
        for name, text in sorted(files.items()):
            yield name, _parsed(text)
        return
    for kind in {type(layer): None for _, layer in files.layers()}:
        for name, method in vars(kind).items():
            if inspect.isfunction(method) and name != "__init__":
                source = textwrap.dedent(inspect.getsource(method))
                yield f"{kind.__name__}.{name}", _parsed(source)


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@invariant
def no_power_of_an_array(files: Files | Layer) -> None:
    """In the mathematics, products are written out: x * x * x, not x**3."""
    for name, tree in parsed(files):
        for node in ast.walk(tree):
            power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
            called = isinstance(node, ast.Attribute) and node.attr in ("power", "float_power")
            if power or called:
                raise AssertionError(_at(name, node))


@invariant
def no_bare_except(files: Files) -> None:
    """Every `except` says what it catches."""
    for name, tree in parsed(files):
        for node in ast.walk(tree):
            bare = isinstance(node, ast.ExceptHandler) and node.type is None
            assert not bare, f"{_at(name, node)} is bare"


@invariant
def cupy_is_imported_in_one_place(files: Files) -> None:
    """Only one file imports CuPy, so one file decides what happens without a GPU."""
    for name, tree in parsed(files):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            roots = {imported.partition(".")[0] for imported in names}
            assert name == "npformer/core/cupy_backend.py" or not roots & {"cupy", "cupyx"}, _at(
                name, node
            )


@invariant
def gradients_are_checked_in_earnest(files: Files) -> None:
    """No test of a gradient is skipped, expected to fail, or given a tolerance above 1e-6."""
    assert TOLERANCE <= 1e-6, "the usual tolerance is above 1e-6"
    for name, tree in parsed(files):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _last(node) == "gradcheck":
                for keyword in node.keywords:
                    if keyword.arg == "tolerance":
                        value = getattr(keyword.value, "value", math.inf)
                        assert value <= 1e-6, _at(name, node)
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                marks = {_last(d) for d in node.decorator_list} & {"skip", "skipif", "xfail"}
                checks = any(
                    isinstance(n, ast.Call) and _last(n) == "gradcheck" for n in ast.walk(node)
                )
                assert not (marks and checks), f"{name}, line {node.lineno}: {node.name}"


def _at(name: str, node: ast.AST) -> str:
    return f"{name}, line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def _last(node: ast.expr) -> str:
    """Return the last name of a dotted expression, called or not."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
