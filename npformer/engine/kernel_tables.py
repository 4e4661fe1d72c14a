"""The tables of kernels, which are imported when a model first needs them.

So `import npformer` loads no kernels, numba is loaded only where arrays of NumPy are computed with,
and the kernels for CuPy only where it is used. The tables themselves stand in `cpu/__init__` and
`gpu/__init__`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from npformer.core import Array

KernelPair = tuple[Callable[..., tuple[Array, Any]], Callable[..., Any]]
"""A forward and a backward pass, with the arguments of the pair that they stand for."""

Update = Callable[..., Any]
"""A function without a backward pass."""


def kernels_of(backend: str) -> Mapping[str, KernelPair] | None:
    """Return the kernels of a backend by name; None if it has none."""
    if backend == "numpy":
        from npformer.engine import cpu

        return cpu.KERNELS
    if backend == "cupy":
        from npformer.engine import gpu

        return gpu.KERNELS
    return None


def updates_of(backend: str) -> Mapping[str, Update]:
    """Return the kernels of a backend that stand for updates, by name; empty if it has none."""
    if backend == "numpy":
        from npformer.engine import cpu

        return cpu.UPDATES
    if backend == "cupy":
        from npformer.engine import gpu

        return gpu.UPDATES
    return {}
