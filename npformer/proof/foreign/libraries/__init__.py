"""Modules and functions of libraries that differentiate by themselves.

npformer imports none of them. Whoever hands over a module of torch or an array of JAX has imported
that library, so it is looked up among the modules that are loaded. What is compared is the gradient
that the library computes, also by a backward pass that the user wrote for it: a
``torch.autograd.Function``, a ``jax.custom_vjp``, a primitive of autograd.
"""

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from npformer.proof.foreign.libraries.autograd_function import AutogradFunction
from npformer.proof.foreign.libraries.jax_function import JaxFunction
from npformer.proof.foreign.libraries.library_function import LibraryFunction
from npformer.proof.foreign.libraries.mlx_function import MlxFunction
from npformer.proof.foreign.libraries.tinygrad_function import TinygradFunction
from npformer.proof.foreign.libraries.torch_function import TorchFunction

LIBRARIES: dict[str, type[LibraryFunction]] = {
    "torch": TorchFunction,
    "jax": JaxFunction,
    "mlx": MlxFunction,
    "tinygrad": TinygradFunction,
    "autograd": AutogradFunction,
}

BUILT_ON_JAX = ("jaxlib", "flax", "equinox", "haiku")
"""Their modules are trees of JAX's arrays."""


def library_of(target: Any, inputs: Sequence[Any]) -> str:
    """Return the library that an object, a function or one of its inputs belongs to; "" if none."""
    for value in (target, *inputs):
        for kind in type(value).__mro__:
            library = _library_of_module(kind.__module__)
            if library:
                return library
    return _library_read_by(getattr(target, "__func__", target))


def is_autograd_function(kind: type) -> bool:
    """Return whether a class is a ``torch.autograd.Function``, whose passes are static."""
    return any(base.__module__ == "torch.autograd.function" for base in kind.__mro__)


def _library_of_module(module: str) -> str:
    package = module.partition(".")[0]
    if package in BUILT_ON_JAX:
        package = "jax"
    return package if package in LIBRARIES and package in sys.modules else ""


def _library_read_by(function: Any) -> str:
    """Return the library that a function reads by a global name or from around it; "" if none."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in [*map(function.__globals__.get, code.co_names), *around]:
        is_module = isinstance(value, ModuleType)
        module = value.__name__ if is_module else type(value).__module__
        library = _library_of_module(module)
        if library:
            return library
    return ""
