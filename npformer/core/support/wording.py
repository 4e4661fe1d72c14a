"""Words for messages."""

import inspect
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np

SHOWN = (bool, int, float, complex, str, bytes, list, tuple, dict, PurePath, np.generic)
"""Values that a message shows as they are written."""


def add_article(name: str) -> str:
    """Return the name of a type with its article: "a list", "an int"."""
    return f"{'an' if name[0] in 'AEIOUaeio' or name == 'ndarray' else 'a'} {name}"


def a_type(value: object) -> str:
    """Return the type of a value with its article; "None" for None."""
    return "None" if value is None else add_article(type(value).__name__)


def describe(value: Any) -> str:
    """Return a description of a value: a short value itself, NumPy's as Python's."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value) and not isinstance(value, partial):  # a partial is, since 3.14
        return f"the function {value.__name__}"
    if isinstance(value, SHOWN):
        with np.printoptions(legacy="1.25"):  # 3.0, not np.float64(3.0)
            words = repr(value)
        return words if len(words) <= 100 else f"{words[:100]}..."
    return a_type(value)


def missing_method_error(owner: object, call: str) -> NotImplementedError:
    """Return the error for a method that a class should have defined, called like this."""
    name = call.partition("(")[0]
    return NotImplementedError(f"{type(owner).__name__} does not define {name}; expected {call}")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return ``". Did you mean 'x'?"`` if `word` is close to a known word; else ""."""
    close = get_close_matches(str(word), known, n=1)
    return f". Did you mean {close[0]!r}?" if close else ""


def shorten_names(names: Sequence[str], longest: int) -> list[str]:
    """Return names of at most `longest` characters, all different if the names are.

    Names that begin alike lose their middle; names that also end alike get numbers.
    """
    cut = [_cut_end(name, longest) for name in names]
    alike = [name for name, n in Counter(cut).items() if n > 1]
    for i, name in enumerate(names):
        if cut[i] in alike:
            half = longest // 2
            cut[i] = f"{name[: longest - half - 1]}…{name[-half:]}"
    alike = [name for name, n in Counter(cut).items() if n > 1]
    for i, name in enumerate(names):
        if cut[i] in alike:
            number = f"… ({i + 1})"
            cut[i] = f"{name[: longest - len(number)]}{number}"
    return cut


def _cut_end(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
