"""Kernels for the optimizer's update and for clipping, and the generator of masks on a GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import Array, backend_of, is_array
from npformer.engine.switch import enabled
from npformer.engine.twin_classes import FLOATS
from npformer.engine.verdict import proven


def update(name: str, x: Array) -> Callable[..., Any] | None:
    """Return the kernel for ``"adam_update"`` or another function of vectors like x, or None."""
    if not enabled() or x.ndim != 1 or x.dtype.char not in FLOATS:
        return None
    if type(x) is np.ndarray:
        from npformer.engine import cpu

        return cpu.UPDATES.get(name)
    if is_array(x) and backend_of(x=x).name == "cupy":
        from npformer.engine import gpu

        found = gpu.UPDATES.get(name)
        return found if found is None or proven(name, x.dtype.char) else None
    return None


def device_generator(backend: str, seed: int) -> Any:
    """Return a generator that draws dropout's masks on a GPU; None if the backend has none.

    `seed` is from 0 to 2^63 - 1.
    """
    if backend != "cupy" or not proven("DeviceGenerator", "f"):
        return None
    from npformer.engine.gpu import DeviceGenerator

    return DeviceGenerator(seed, backend)
