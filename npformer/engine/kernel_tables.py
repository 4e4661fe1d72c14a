"""The tables of kernels, which are imported when a model first needs them.

So `import npformer` loads no kernels: numba is loaded when a model first computes with NumPy
arrays, and the kernels for CuPy when one first computes with CuPy arrays. The tables themselves are
in `cpu/__init__` and `gpu/__init__`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from npformer.core import Array

KernelPair = tuple[Callable[..., tuple[Array, Any]], Callable[..., Any]]
"""A forward and a backward pass, with the arguments of the pair that they replace."""

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
    """Return a backend's kernels for updates by name; empty if it has none."""
    if backend == "numpy":
        from npformer.engine import cpu

        return cpu.UPDATES
    if backend == "cupy":
        from npformer.engine import gpu

        return gpu.UPDATES
    return {}
