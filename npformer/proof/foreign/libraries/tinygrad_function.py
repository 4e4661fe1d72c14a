"""Functions and modules of tinygrad, in float64."""

import copy
import importlib
from typing import Any

import numpy as np

from npformer.proof.foreign.arrays_inside import write
from npformer.proof.foreign.libraries.library_function import (
    LibraryFunction,
    Pull,
    first_output,
    is_float_array,
)


class TinygradFunction(LibraryFunction):
    """A function of tensors, or an object that holds some."""

    package = "tinygrad"

    def __init__(self, target: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__(target, inputs, options)
        self.state = importlib.import_module("tinygrad.nn.state")
        self.call = self.call_by_name(target)
        self.parameters: dict[str, Any] = {}
        if not hasattr(target, "__code__"):
            named = self.state.get_state_dict(target)
            self.parameters = {n: t for n, t in named.items() if is_float_array(t)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return inputs, and the tensors inside the object."""
        floats = {n: value for n, value in self.call.values.items() if is_float_array(value)}
        return {name: self._to_numpy(value) for name, value in (floats | self.parameters).items()}

    def _to_numpy(self, value: Any) -> np.ndarray:
        array = value if isinstance(value, np.ndarray) else value.numpy()
        return np.array(array, dtype=np.float64)

    def run(self, arrays: dict[str, np.ndarray]) -> tuple[Any, Pull]:
        """Run the forward pass on new tensors."""
        tensor, dtypes = self.library.Tensor, self.library.dtypes
        tensors = {name: tensor(x.copy(), dtype=dtypes.float64) for name, x in arrays.items()}
        values = {
            name: tensors[name] if name in tensors else self._to_tensor(value)
            for name, value in self.call.values.items()
        }
        module = self.target
        if self.parameters:
            module = copy.deepcopy(self.target)
            for name in self.parameters:
                _write_dotted(module, name, tensors[name])
        y = first_output(self.call.run(values, module))

        def pull(dy: Any) -> dict[str, Any]:
            loss = (y * tensor(np.array(dy), dtype=dtypes.float64)).sum()
            gradients = loss.gradient(*tensors.values())
            named = zip(tensors, gradients, strict=True)
            return {name: gradient.numpy() for name, gradient in named}

        return y.numpy(), pull

    def _to_tensor(self, value: Any) -> Any:
        return self.library.Tensor(value) if isinstance(value, np.ndarray) else value


def _write_dotted(module: Any, name: str, value: Any) -> None:
    """Put a tensor where a name such as ``layers.0.weight`` says."""
    steps = [f"[{step}]" if step.isdigit() else f".{step}" for step in name.split(".")]
    path = "".join(steps).removeprefix(".")
    write(module, path, value)
