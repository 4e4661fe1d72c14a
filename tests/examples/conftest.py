"""Examples as modules, which nothing runs by being imported."""

import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name):
    """Return an example's module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pairs(of_example, of_model, name_in_npformer):
    """Yield the full name in npformer of each array of an example; none may be left over."""
    seen = set()
    for name, arrays in of_example.items():
        layer = name_in_npformer(name)
        names = [n for n in of_model if n.rpartition(".")[0] == layer]
        for full, array in zip(names, arrays, strict=True):
            seen.add(full)
            yield full, array
    assert seen == set(of_model)
