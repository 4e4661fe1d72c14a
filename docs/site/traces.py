"""A call of a function, watched: what each line made, and the calls that each line began.

Beside that function, those of `npformer.functional` are watched; a helper's call stands below the
line of its caller. So the numbers are those of a run, and a helper can be opened where it is
called.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

FUNCTIONAL = Path(__file__).resolve().parents[2] / "npformer" / "functional"


@dataclass
class Call:
    """A call: its code, its result, and what its lines made, by their numbers in the file."""

    code: CodeType
    arguments: dict[str, Any]
    result: Any = None
    last_line: int = 0
    values_by_line: dict[int, dict[str, Any]] = field(default_factory=dict)
    calls_by_line: dict[int, list["Call"]] = field(default_factory=dict)


def watch(function: Callable[..., Any], *inputs: Any, **options: Any) -> Call:
    """Call a function and return the record of the call."""
    return _Watch(function).run(*inputs, **options)


class _Watch:
    """Record the call of a function, and the calls of helpers within it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._code = inspect.unwrap(function).__code__
        self._calls: list[Call] = []
        self._running: list[_Running] = []

    def run(self, *inputs: Any, **options: Any) -> Call:
        """Call the function and return its record."""
        sys.settrace(self._on_call)
        try:
            self._function(*inputs, **options)
        finally:
            sys.settrace(None)
        return self._calls[0]

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        is_helper = Path(code.co_filename).parent == FUNCTIONAL and code.co_name[0] != "<"
        if code is not self._code and not (self._running and is_helper):
            return None  # a comprehension, <listcomp>, belongs to the line that it stands in
        call = Call(code, _copies(frame))
        if self._running:
            caller = self._running[-1]
            caller.call.calls_by_line.setdefault(caller.line, []).append(call)
        else:
            self._calls.append(call)
        self._running.append(_Running(call, dict(call.arguments)))
        return self._on_line

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        running = self._running[-1]
        running.note(frame)
        running.line = frame.f_lineno
        if event == "return":
            running.call.result = argument
            running.call.last_line = running.line
            running.call.values_by_line.setdefault(running.line, {})
            self._running.pop()
        return self._on_line


@dataclass
class _Running:
    """A call that has not returned: its names so far, and its line (0: none yet)."""

    call: Call
    names: dict[str, Any]
    line: int = 0

    def note(self, frame: FrameType) -> None:
        """Give the line that has just run what it made."""
        now = _copies(frame)
        if self.line:
            new_values = {name: value for name, value in now.items() if self._is_new(name, value)}
            self.call.values_by_line.setdefault(self.line, {}).update(new_values)
        self.names = now

    def _is_new(self, name: str, value: Any) -> bool:
        return name not in self.names or not are_same(value, self.names[name])


def _copies(frame: FrameType) -> dict[str, Any]:
    """Return the names of a frame, with copies of arrays, which a later line may change."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in frame.f_locals.items()
    }


def are_same(one: Any, other: Any) -> bool:
    """Return whether two values are one object or equal arrays."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        has_nan = one.dtype.kind == "f"
        return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=has_nan))
    return one is other


def definition(code: CodeType) -> tuple[list[str], int, ast.FunctionDef]:
    """Return a function's lines, the number of the first one in its file, and its syntax tree."""
    lines, first = inspect.getsourcelines(code)
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return lines, first, tree


def return_value(call: Call) -> ast.expr | None:
    """Return the expression of the return statement that ended a call; None if there is none."""
    _, first, tree = definition(call.code)
    line = call.last_line - first + 1
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.lineno <= line <= (node.end_lineno or line):
            return node.value
    return None


def cache_fields(call: Call) -> list[str] | None:
    """Return the code of each entry of the cache that a call returned.

    That is ``return result, (entry, entry, ...)``; None if the call returned something else.
    """
    expression = return_value(call)
    if not isinstance(expression, ast.Tuple) or len(expression.elts) != 2:
        return None
    entries = expression.elts[1]
    return (
        [ast.unparse(entry) for entry in entries.elts] if isinstance(entries, ast.Tuple) else None
    )
