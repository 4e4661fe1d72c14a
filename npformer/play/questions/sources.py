"""The lines of `functional` that a layer runs, forward and backward."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path

import npformer
from npformer import functional as F
from npformer.mixers import Attention

CALL = re.compile(r"\bF\.([a-z]\w*)\(")


@cache
def function_of(kind: type, way: str) -> str | None:
    """Return the name of the function that a layer's "forward" or "backward" pass is about."""
    if issubclass(kind, Attention):
        return "scaled_dot_product_attention" + ("_backward" if way == "backward" else "")
    for each in kind.__mro__:
        method = vars(each).get(way)
        if method is None:
            continue
        try:
            names = CALL.findall(inspect.getsource(method))
        except (OSError, TypeError):
            return None
        names = [name for name in names if name not in ("split_heads", "merge_heads")]
        return names[0] if names and hasattr(F, names[0]) else None
    return None


@cache
def lines_of(name: str) -> tuple[str, str]:
    """Return the source of a function without its docstring, and the path of its file."""
    function = inspect.unwrap(getattr(F, name))
    source = textwrap.dedent(inspect.getsource(function))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef)
    lines = source.splitlines()
    first = definition.body[0]
    if ast.get_docstring(definition) is not None:
        del lines[first.lineno - 1 : first.end_lineno]
    root = Path(npformer.__file__).parent.parent
    file = Path(inspect.getsourcefile(function) or "").relative_to(root)
    return "\n".join(lines), file.as_posix()
