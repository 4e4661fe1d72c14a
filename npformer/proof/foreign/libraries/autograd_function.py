"""Functions of the library autograd, which are functions of NumPy's arrays."""

from typing import Any

import numpy as np

from npformer.proof.foreign.libraries.library_function import (
    LibraryFunction,
    Pull,
    is_float_array,
)


class AutogradFunction(LibraryFunction):
    """A function that calls ``autograd.numpy``."""

    package = "autograd"

    def __init__(self, target: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__(target, inputs, options)
        self.call = self.call_by_name(target)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arguments that are arrays of floats."""
        floats = {n: value for n, value in self.call.values.items() if is_float_array(value)}
        return {name: np.array(value, dtype=np.float64) for name, value in floats.items()}

    def run(self, arrays: dict[str, np.ndarray]) -> tuple[Any, Pull]:
        """Run the forward pass under ``autograd.make_vjp``."""

        def function(moved: dict[str, Any]) -> Any:
            return self.call.run({name: moved.get(name, x) for name, x in self.call.values.items()})

        pull_tree, y = self.library.make_vjp(function)(dict(arrays))

        def pull(dy: Any) -> dict[str, Any]:
            return {name: np.asarray(gradient) for name, gradient in pull_tree(dy).items()}

        return y, pull
