"""npformer: the Transformer encoder written out by hand in NumPy.

    config = npformer.EncoderConfig(d_model=64, n_layers=2, mixer="attention")
    model = npformer.SequenceClassifier(config, n_classes=10, n_features=8)
    history = npformer.fit(model, (x, y))

`functional` holds the mathematics; `layers` and `mixers` add parameters to it. `gradcheck` checks
their gradients, and `data` has tasks to train on.

The public names are listed in ``__init__.pyi``, where editors and type checkers look for them. Each
is imported when it is first used (PEP 562), so a program loads only the rooms that it enters.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_PLACES = {
    alias.asname or alias.name: (node.module, alias.name)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module is not None
    for alias in node.names
}
"""Each public name's module, and its name there."""

__all__ = sorted(_PLACES.keys() - {"sklearn"})  # which needs an extra


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        instead = "write Encoder, SequenceClassifier or LanguageModel; their parts: npformer.layers"
        raise AttributeError(f"module 'npformer' has no attribute {name!r}; {instead}")
    module, name_there = _PLACES[name]
    found = sys.modules[__name__] if module == __name__ else import_module(module)
    if name_there in vars(found):
        value = vars(found)[name_there]
    else:  # a module itself
        value = import_module(f"{module}.{name_there}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _importable(name: str) -> None:
    """Let ``from npformer.NAME import ...`` find a module that lies deeper in the house."""
    module = ModuleType(f"{__name__}.{name}")
    module.__getattr__ = lambda attribute: getattr(__getattr__(name), attribute)  # type: ignore[method-assign]
    sys.modules[module.__name__] = module


for _name in ("distributed", "losses", "sklearn"):
    _importable(_name)
