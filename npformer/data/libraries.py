"""Libraries of the package's extras, imported when they are needed."""

import importlib
from typing import Any


def library(name: str, extra: str, who: str, advice: str = "") -> Any:
    """Return a module; if it cannot be imported, an ImportError says which extra brings it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{who} needs the package {name}, which cannot be imported here ({error}); install it: "
            f'python -m pip install "npformer[{extra}]"{advice}'
        ) from error
