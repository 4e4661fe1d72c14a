"""Optional libraries, which the extras install; each is imported when it is needed."""

import importlib
from typing import Any


def library(name: str, extra: str, who: str, advice: str = "") -> Any:
    """Return a module; if it cannot be imported, ImportError names the extra that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{who} needs the package {name}, which cannot be imported here ({error}); install it: "
            f"{install_command(extra)}{advice}"
        ) from error


def install_command(extra: str) -> str:
    """Return what to type to install the libraries of an extra."""
    return f'python -m pip install "npformer[{extra}]"'
