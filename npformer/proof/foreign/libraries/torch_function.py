"""Modules and functions of PyTorch, on copies in float64."""

import copy
from typing import Any

import numpy as np

from npformer.proof.foreign.libraries.library_function import (
    LibraryFunction,
    Pull,
    first_output,
    is_float_array,
)


class TorchFunction(LibraryFunction):
    """A ``torch.nn.Module``, ``Function.apply`` or a function of tensors."""

    package = "torch"

    def __init__(self, target: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__(target, inputs, options)
        self.module = None
        if isinstance(target, self.library.nn.Module):
            self.module = copy.deepcopy(target).cpu().double()
        function = target if self.module is None else self.module.forward
        self.call = self.call_by_name(function)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return inputs, and the parameters of a module that are trained."""
        inputs = {
            name: self._to_numpy(value)
            for name, value in self.call.values.items()
            if is_float_array(value)
        }
        if self.module is None:
            return inputs
        named = self.module.named_parameters()
        return inputs | {n: self._to_numpy(p) for n, p in named if p.requires_grad}

    def _to_numpy(self, value: Any) -> np.ndarray:
        if isinstance(value, self.library.Tensor):
            value = value.detach().cpu().numpy()
        return np.array(value, dtype=np.float64)

    def run(self, arrays: dict[str, np.ndarray]) -> tuple[Any, Pull]:
        """Run the forward pass on tensors that record it."""
        torch = self.library
        tensors = {name: torch.tensor(array).requires_grad_() for name, array in arrays.items()}
        values = {
            name: tensors[name] if name in tensors else self._to_tensor(value)
            for name, value in self.call.values.items()
        }
        function = self.target
        if self.module is not None:
            module = copy.deepcopy(self.module)
            parameters = {n: t for n, t in tensors.items() if n not in self.call.values}

            def function(*args: Any, **options: Any) -> Any:
                return torch.func.functional_call(module, parameters, args, options)

        torch.manual_seed(0)
        y = first_output(self.call.run(values, function))

        def pull(dy: Any) -> dict[str, Any]:
            gradients = torch.autograd.grad(
                outputs=y,
                inputs=list(tensors.values()),
                grad_outputs=torch.tensor(dy, dtype=y.dtype),
                allow_unused=True,
                retain_graph=True,
            )
            named = zip(tensors, gradients, strict=True)
            return {name: None if g is None else g.detach().numpy() for name, g in named}

        return y.detach().numpy(), pull

    def _to_tensor(self, value: Any) -> Any:
        return self.library.tensor(value) if isinstance(value, np.ndarray) else value
