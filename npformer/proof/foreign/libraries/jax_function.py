"""Functions of JAX, and modules that are trees of its arrays, in float64."""

from typing import Any

import numpy as np

from npformer.proof.foreign.libraries.library_function import (
    LibraryFunction,
    Pull,
    first_output,
    is_float_array,
)


class JaxFunction(LibraryFunction):
    """A function of arrays and of trees of arrays, or a module that is such a tree."""

    package = "jax"

    def __init__(self, target: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__(target, inputs, options)
        tree_util = self.library.tree_util
        self.is_tree = not callable(getattr(target, "__code__", None)) and (
            len(tree_util.tree_leaves(target)) != 1
            or tree_util.tree_leaves(target)[0] is not target
        )
        module = target if self.is_tree else None
        paths, self.structure = tree_util.tree_flatten_with_path((inputs, options, module))
        self.leaves = [leaf for _, leaf in paths]
        self.names = [self._name(path) for path, _ in paths]

    def _name(self, path: Any) -> str:
        """Return the name of a leaf: of an argument by its place, of a module by its path."""
        first, *rest = path
        written = self.library.tree_util.keystr(tuple(rest))
        if first.idx == 0:
            argument: str = self._argument_names()[rest[0].idx]
            return argument + str(self.library.tree_util.keystr(tuple(rest[1:])))
        return str(written).strip(".[]'")

    def _argument_names(self) -> list[str]:
        function = self.target
        try:
            names = list(self.call_by_name(function).values)
        except (TypeError, ValueError):
            names = []
        return names if len(names) >= len(self.inputs) else [f"x{i}" for i in range(9)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all leaves that are arrays of floats."""
        return {
            name: np.array(leaf, dtype=np.float64)
            for name, leaf in zip(self.names, self.leaves, strict=True)
            if is_float_array(leaf)
        }

    def run(self, arrays: dict[str, np.ndarray]) -> tuple[Any, Pull]:
        """Run the forward pass under ``jax.vjp``, in float64."""
        jax = self.library
        numpy = jax.numpy

        def function(moved: dict[str, Any]) -> Any:
            leaves = [moved.get(n, leaf) for n, leaf in zip(self.names, self.leaves, strict=True)]
            inputs, options, module = jax.tree_util.tree_unflatten(self.structure, leaves)
            run = module if self.is_tree else self.target
            return first_output(run(*inputs, **options))

        with self._in_float64():
            y, pull_tree = jax.vjp(function, {n: numpy.asarray(x) for n, x in arrays.items()})

        def pull(dy: Any) -> dict[str, Any]:
            with self._in_float64():
                (gradients,) = pull_tree(numpy.asarray(dy, dtype=y.dtype))
                return {name: np.asarray(gradient) for name, gradient in gradients.items()}

        return np.asarray(y), pull

    def _in_float64(self) -> Any:
        """Return the context in which JAX keeps float64, as its versions call it."""
        if hasattr(self.library, "enable_x64"):
            return self.library.enable_x64(True)
        import importlib

        return importlib.import_module("jax.experimental").enable_x64()
