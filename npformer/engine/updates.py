"""Kernels for the optimizer's update and for clipping, and the generator of masks on a GPU."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from npformer.core import Array, backend_of, is_array
from npformer.core.dispatch import register
from npformer.engine.twin_classes import FLOATS
from npformer.engine.verdict import proven
from npformer.optim import adam_update, clip_by_global_norm


def kernel(name: str, x: Array) -> Callable[..., Any] | None:
    """Return the kernel of the function `name` for arrays like x; None if there is none."""
    if x.dtype.char not in FLOATS:
        return None
    if type(x) is np.ndarray:
        from npformer.engine import cpu

        return cpu.UPDATES.get(name) if x.flags.c_contiguous or x.ndim == 1 else None
    if x.ndim == 1 and is_array(x) and backend_of(x=x).name == "cupy":
        from npformer.engine import gpu

        found = gpu.UPDATES.get(name)
        return found if found is None or proven(name, x.dtype.char) else None
    return None


for _plain in (adam_update, clip_by_global_norm):
    register(_plain, partial(kernel, _plain.__name__))


def adam_numbers(
    t: int, lr: float, betas: tuple[float, float], eps: float, weight_decay: float = 0.0
) -> tuple[float, float, float]:
    """Return (size, eps, shrink) with theta = shrink theta - size m / (sqrt(v) + eps) at step t.

    This is the step of `npformer.Adam`, numerator and denominator times sqrt(1 - beta2^t): it
    divides once where the formula divides three times.
    """
    beta1, beta2 = betas
    root = math.sqrt(1.0 - math.pow(beta2, t))
    return lr * root / (1.0 - math.pow(beta1, t)), eps * root, 1.0 - lr * weight_decay


def device_generator(backend: str, seed: int) -> Any:
    """Return a generator that draws dropout's masks on a GPU; None if the backend has none.

    `seed` is from 0 to 2^63 - 1.
    """
    if backend != "cupy" or not proven("DeviceGenerator", "f"):
        return None
    from npformer.engine.gpu import DeviceGenerator

    return DeviceGenerator(seed, backend)
