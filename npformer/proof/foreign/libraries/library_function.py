"""What gradcheck needs of a function of a library: its arrays, y, and its gradients."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from npformer.proof.pairs import Call, name_of
from npformer.proof.problem import Convert, Problem

Pull = Callable[[Any], dict[str, Any]]
"""Takes dy and returns the gradients by name; None for what y does not depend on."""


class LibraryFunction:
    """A module or a function of a library, with its arguments."""

    package = ""

    def __init__(self, target: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.target = target
        self.inputs = inputs
        self.options = options
        self.library = sys.modules[self.package]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays of floats, inputs first, as float64 of NumPy, by their names."""
        raise NotImplementedError

    def run(self, arrays: dict[str, np.ndarray]) -> tuple[Any, Pull]:
        """Return y, and what returns the gradients for a dy."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """Name of the function or of the class of the module."""
        named = hasattr(self.target, "__name__")
        return name_of(self.target) if named else type(self.target).__name__

    def call_by_name(self, function: Any) -> Call:
        """Return the call of a function with these inputs."""
        return Call(function, self.inputs, self.options)


def library_problem(
    function: LibraryFunction, wrt: Sequence[str] | None, convert: Convert | None = None
) -> Problem:
    """Return a function of a library as a function of arrays of NumPy."""
    new_copy = convert or np.array
    all_arrays = {name: new_copy(array) for name, array in function.arrays().items()}

    def forward() -> tuple[Any, Any]:
        y, pull = function.run(all_arrays)
        return np.array(y), pull

    def backward(dy: Any, cache: Pull, start: float = 0.0) -> dict[str, Any]:
        return cache(dy)

    def convert_arrays(
        convert: Convert, other_ids: bool = False
    ) -> AbstractContextManager[Problem]:
        return nullcontext(library_problem(function, wrt, convert))

    names = all_arrays if wrt is None else wrt
    return Problem(
        title=function.title,
        forward=forward,
        backward=backward,
        arrays={name: all_arrays[name] for name in names},
        inputs=list(all_arrays)[:1],
        constants=[],
        convert_arrays=convert_arrays,
    )


def first_output(result: Any) -> Any:
    """Return the only output, or the first of several."""
    return result[0] if isinstance(result, (tuple, list)) else result


def is_float_array(value: Any) -> bool:
    """Whether a value is an array of floats, of NumPy or of a library."""
    dtype = str(getattr(value, "dtype", ""))
    return any(name in dtype for name in ("float", "double", "half"))
