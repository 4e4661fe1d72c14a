"""Names that a public module does not have: the error leads to a name that is close, or elsewhere.

Completion shows the public names of such a module, not what it imports.
"""

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

from npformer.core.support.other_names import place_of

PACKAGE = "npformer"


def lead_to_names(module_name: str) -> None:
    """Let a module's errors and its completion know its ``__all__``, which it has defined before.

    Type checkers do not see it: to them an unknown name stays an error.
    """
    module = sys.modules[module_name]
    names: list[str] = module.__all__

    def refuse(name: str) -> NoReturn:
        raise missing_name_error(module_name, name, names)

    setattr(module, "__getattr__", refuse)  # noqa: B010 - the module's hook: PEP 562
    setattr(module, "__dir__", lambda: public_names(vars(module), names))  # noqa: B010


def public_names(namespace: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return what completion shows of a module: its public names, and Python's own."""
    special = [name for name in namespace if name.startswith("__") and name.endswith("__")]
    return sorted({*special, *names})


def missing_name_error(
    module_name: str, name: str, names: Sequence[str], advice: str = ""
) -> AttributeError:
    """Return the error for a name that a public module does not have.

    Parameters
    ----------
    module_name, name : str
    names : list of str
        Those that the module has.
    advice : str
        What it says if no name is close.
    """
    package = import_module(PACKAGE)
    short = {path: f"{PACKAGE}.{name}" for name, path in package.MODULES.items()}
    words = f"module {short.get(module_name, module_name)!r} has no attribute {name!r}"
    if not _is_asked_by_python(module_name, name):
        words += _lead(name, names) or advice
    return AttributeError(words, name=name)  # with a name: Python's traceback suggests nothing more


def _is_asked_by_python(module_name: str, name: str) -> bool:
    """Return whether Python may ask for a name, as it does before it imports a module."""
    if name.startswith("_"):
        return True
    is_package = hasattr(sys.modules[module_name], "__path__")
    return is_package and find_spec(f"{module_name}.{name}") is not None


def _lead(name: str, names: Sequence[str]) -> str:
    """Return what to write instead of a name that a module with other names lacks; else ""."""
    package = import_module(PACKAGE)
    places = {
        public_name: f"{PACKAGE}.{short}.{public_name}"
        for short in reversed(package.WITH_PARTS)
        for public_name in import_module(package.MODULES[short]).__all__
    }
    places |= {public_name: f"{PACKAGE}.{public_name}" for public_name in package.__all__}
    place = place_of(name) or places.get(name)
    if place is not None:
        return f"; write {place}"
    places |= {public_name: public_name for public_name in names}
    close = get_close_matches(name, places, n=1)
    return f". Did you mean {places[close[0]]!r}?" if close else ""
