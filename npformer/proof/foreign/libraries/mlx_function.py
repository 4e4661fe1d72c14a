"""Functions and modules of MLX. They are run in float32, which all of its devices have."""

import importlib
from typing import Any

import numpy as np

from npformer.proof.foreign.libraries.library_function import (
    LibraryFunction,
    Pull,
    first_output,
    is_float_array,
)


class MlxFunction(LibraryFunction):
    """A ``mlx.nn.Module`` or a function of arrays."""

    package = "mlx"

    def __init__(self, target: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__(target, inputs, options)
        self.core = importlib.import_module("mlx.core")
        self.utils = importlib.import_module("mlx.utils")
        self.parameters: dict[str, Any] = {}
        if hasattr(target, "trainable_parameters"):
            self.parameters = dict(self.utils.tree_flatten(target.trainable_parameters()))
        self.call = self.call_by_name(target)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return inputs, and the parameters of a module that are trained."""
        floats = {n: value for n, value in self.call.values.items() if is_float_array(value)}
        named = floats | self.parameters
        return {name: np.array(value, dtype=np.float64) for name, value in named.items()}

    def run(self, arrays: dict[str, np.ndarray]) -> tuple[Any, Pull]:
        """Run the forward pass; ``mx.vjp`` runs it again with a dy."""
        core = self.core
        names = list(arrays)
        primals = [core.array(array.astype(np.float32)) for array in arrays.values()]

        def function(*moved: Any) -> Any:
            by_name = dict(zip(names, moved, strict=True))
            values = {
                name: by_name[name] if name in by_name else self._to_mlx(value)
                for name, value in self.call.values.items()
            }
            parameters = [(name, by_name[name]) for name in self.parameters]
            if parameters:
                self.target.update(self.utils.tree_unflatten(parameters))
            return first_output(self.call.run(values))

        def pull(dy: Any) -> dict[str, Any]:
            _, gradients = core.vjp(function, primals, [core.array(dy.astype(np.float32))])
            self._restore()
            named = zip(names, gradients, strict=True)
            return {name: np.array(gradient, dtype=np.float64) for name, gradient in named}

        y = np.array(function(*primals))
        self._restore()
        return y, pull

    def _restore(self) -> None:
        if self.parameters:
            self.target.update(self.utils.tree_unflatten(list(self.parameters.items())))

    def _to_mlx(self, value: Any) -> Any:
        return self.core.array(value) if isinstance(value, np.ndarray) else value
