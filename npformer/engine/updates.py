"""Kernels for the optimizer's update and for clipping, and the GPU's generator of masks."""

from collections.abc import Callable
from typing import Any

from npformer.core import Array, backend_of, is_array, is_host_array
from npformer.core.dispatch import register
from npformer.engine.kernel_tables import updates_of
from npformer.engine.trusted_kernels import is_trusted
from npformer.engine.twin_classes import FLOATS
from npformer.optim import adam_update, clip_by_global_norm


def update_kernel(name: str, x: Array) -> Callable[..., Any] | None:
    """Return the kernel for the function `name` and arrays like x; None if there is none."""
    if x.dtype.char not in FLOATS:
        return None
    if is_host_array(x):
        if x.flags.c_contiguous or x.ndim == 1:
            return updates_of("numpy").get(name)
        return None
    if x.ndim == 1 and is_array(x) and backend_of(x=x).name == "cupy":
        kernel = updates_of("cupy").get(name)
        if kernel is not None and is_trusted(name, x.dtype.char):
            return kernel
    return None


def kernel_of_adam_update(theta: Array) -> Callable[..., Any] | None:
    """Return the kernel for `optim.adam_update` of a parameter; None if there is none."""
    return update_kernel("adam_update", theta)


def kernel_of_clip_by_global_norm(flat: Array) -> Callable[..., Any] | None:
    """Return the kernel for `optim.clip_by_global_norm` of a flat buffer; None if there is none."""
    return update_kernel("clip_by_global_norm", flat)


register(adam_update, kernel_of_adam_update)
register(clip_by_global_norm, kernel_of_clip_by_global_norm)


def device_generator(backend: str, seed: int) -> Any:
    """Return a generator that draws dropout's masks on a GPU; None if the backend has none.

    `seed` is from 0 to 2^63 - 1.
    """
    if backend != "cupy" or not is_trusted("DeviceGenerator", "f"):
        return None
    from npformer.engine.gpu import DeviceGenerator  # late, as in `kernel_tables`

    return DeviceGenerator(seed, backend)
