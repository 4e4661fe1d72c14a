"""Kernels: pairs of `npformer.functional` once more, made fast for one kind of array.

A kernel computes what its pair, or a few pairs in a row, compute; forward and backward are replaced
together. Layers name the pair that they mean, and get what is fastest for the arrays at hand::

    y, cache = kernels.forward(F.linear, context, x, W, b)
    dx, dW, db = kernels.backward(dy, cache)

Where several layers in a row are one kernel, the layer around them asks whether there is one, and
computes layer by layer if there is none::

    if (fused := kernels.fused("feed_forward", x, context)) is not None:
        y, cache = fused(x, W1, b1, W2, b2, activation, context)

`use_kernels(False)` runs everything on `npformer.functional` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array, array_module, backend_of, is_array
from npformer.module import Context

Forward = Callable[..., tuple[Array, Any]]
Backward = Callable[[Array, Any], Any]
Kernels = dict[str, tuple[Forward, Backward]]

KINDS = frozenset("fdbhilqBHILQ")
"""Kernels are for float32, float64 and token ids; the referee's complex numbers go without."""

_enabled = True


class use_kernels:
    """Switch kernels on or off for the whole process; in a ``with`` statement, for its body.

    Parameters
    ----------
    enabled : bool
        False: every layer computes with `npformer.functional`, one pair after another, to read and
        to debug. The numbers agree up to rounding, unless a GPU draws dropout's masks itself
        (``fit(masks="device")``): it then draws others.

    Examples
    --------
    >>> with npformer.use_kernels(False):
    ...     loss, gradients = model.loss_and_gradients(x, y)
    """

    def __init__(self, enabled: bool) -> None:
        global _enabled
        if not isinstance(enabled, bool):
            raise TypeError(f"enabled is {enabled!r}; expected True or False")
        self._before = _enabled
        _enabled = enabled

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        global _enabled
        _enabled = self._before


def enabled() -> bool:
    """Return whether kernels are used at all: see `use_kernels`."""
    return _enabled


def _kernels_for(x: Array, context: Context) -> Kernels | None:
    """Return the kernels for arrays such as `x`; None if there are none, or none are wanted."""
    if not _enabled or context.plain or x.dtype.char not in KINDS:
        return None
    floor = _floor(x)
    return None if floor is None else floor.KERNELS


def _floor(x: Array) -> Any:
    """Return the package of kernels for arrays such as `x`."""
    if type(x) is np.ndarray:
        return _imported("cpu")
    return _imported("gpu") if _on_gpu(x) else None


def _on_gpu(x: Array) -> bool:
    return is_array(x) and backend_of(x=x).name == "cupy"


@cache
def _imported(name: str) -> Any:
    """Return a package of kernels; once, for even asking for what is imported takes its time."""
    return import_module(f"{__name__}.{name}")


def forward(
    pair: Callable[..., tuple[Array, Any]], context: Context, x: Array, *others: Any, **options: Any
) -> tuple[Array, Any]:
    """Compute a pair of `npformer.functional`, by a kernel if there is one.

    Parameters
    ----------
    pair : callable
        The pair's forward function, such as ``F.linear``.
    context : Context
        Lends the memory to write into, and says whether a backward pass may follow.
    x : array
        The pair's first argument; says which kernels fit.
    *others, **options
        The pair's other arguments.

    Returns
    -------
    y : array
    cache : opaque
        For `backward`.
    """
    name = pair.__name__
    found = _kernels_for(x, context)
    if found is None or name not in found:
        y, cache = pair(x, *others, **options)
        return y, (getattr(F, f"{name}_backward"), cache)
    kernel, kernel_backward = found[name]
    y, cache = kernel(x, *others, context=context, **options)
    return y, (kernel_backward, cache)


def fused(name: str, x: Array, context: Context) -> Forward | None:
    """Return the forward function of a kernel that does the work of several pairs, if there is one.

    Parameters
    ----------
    name : str
    x : array
        Says which kernels fit.
    context : Context

    Returns
    -------
    kernel : callable or None
        ``kernel(x, ..., context) -> (y, cache)``, with a cache for `backward`.
    """
    found = _kernels_for(x, context)
    if found is None or name not in found:
        return None
    kernel, kernel_backward = found[name]

    def run(*arguments: Any, **options: Any) -> tuple[Array, Any]:
        y, cache = kernel(*arguments, **options)
        return y, (kernel_backward, cache)

    return run


def find(name: str, x: Array) -> Callable[..., Any] | None:
    """Return a kernel for a function that has no backward pass, such as an optimizer's update.

    Parameters
    ----------
    name : str
    x : array
        Says which kernels fit.
    """
    if not _enabled or x.dtype.char not in KINDS:
        return None
    floor = _floor(x)
    return None if floor is None else floor.UPDATES.get(name)


def generator(near: Array, seed: int) -> Any:
    """Return a generator that draws dropout's masks where an array lives; None where NumPy does.

    Parameters
    ----------
    near : array
    seed : int
        From 0 to 2^63 - 1.
    """
    make = getattr(_floor(near), "DeviceGenerator", None)
    return None if make is None else make(seed, backend_of(near=near).name)


def backward(dy: Array, cache: Any, *, of_input: bool = True) -> Any:
    """Return the gradients of what `forward`, or a fused kernel, computed.

    Parameters
    ----------
    dy : array
        Gradient of the loss with respect to y.
    cache : opaque
        From `forward`, or from what `fused` returned.
    of_input : bool
        If not, the first gradient is not wanted: kernels that can save it have this parameter, and
        give None in its place.
    """
    function, saved = cache
    if of_input or "of_input" not in (getattr(function, "__kwdefaults__", None) or ()):
        return function(dy, saved)
    return function(dy, saved, of_input=False)


def add(one: Array, other: Array, context: Context) -> Array:
    """Return ``one + other`` in memory that the context lends; `other` may be repeated."""
    if _kernels_for(one, context) is None:
        return one + other
    return array_module(one).add(one, other, out=context.empty(one.shape, one))
