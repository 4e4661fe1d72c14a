"""The lines that a layer runs, forward and backward: those of `functional`, or else its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import npformer
from npformer import functional as F
from npformer.learn.museum.bug import source_of
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
    function = inspect.unwrap(_function(kind, way))
    return function.__name__, source_of([function]), place_of(function)


def summary_of(function: Any) -> str:
    """Return the formula with which a function's docstring begins; "" if it begins otherwise."""
    first_line = (inspect.getdoc(function) or "").partition("\n")[0]
    return first_line if "=" in first_line else ""


def summary_of_layer(kind: Any, way: str) -> str:
    """Return the same of the function that `lines_of` shows."""
    return summary_of(inspect.unwrap(_function(kind, way)))


def place_of(thing: Any) -> str:
    """Return the path of the file that defines a function or a class."""
    root = Path(npformer.__file__).parent.parent
    file = Path(inspect.getsourcefile(thing) or "")
    return (file.relative_to(root) if file.is_relative_to(root) else Path(file.name)).as_posix()


def _function(kind: Any, way: str) -> Callable[..., Any]:
    """Return the pair's function that a class of layers is about, or else its own method."""
    if issubclass(kind, Attention):
        pair = F.scaled_dot_product_attention, F.scaled_dot_product_attention_backward
        return pair[way == "backward"]
    named: list[str] = []
    for base in kind.__mro__:
        for method in METHODS[way]:
            if method in vars(base):
                named += CALL.findall(inspect.getsource(vars(base)[method]))
        if named:
            break
    named.sort(key=lambda name: name in ASIDE)  # a stable sort: those come last
    if way == "backward":
        named.sort(key=lambda name: not name.endswith("_backward"))
    known = [getattr(F, name) for name in named if hasattr(F, name)]
    return known[0] if known else getattr(kind, way)  # type: ignore[no-any-return]
