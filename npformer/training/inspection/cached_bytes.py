"""How many bytes a pass keeps for the backward pass: each array once, and no weights."""

import gc
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from npformer.core import Array, Layer, Parameter, is_array

_OPAQUE = (str, bytes, int, float, complex, type, ModuleType, np.generic, np.dtype)
"""What is not looked into: it holds no array, or is shared by all caches."""


def cached_bytes(caches: Iterable[Any], kept: Any, given: Iterable[Any], layer: Layer) -> list[int]:
    """Return for each cache the bytes of the arrays in it that no cache before it has.

    Parameters
    ----------
    caches : iterable
        Those of all calls, in the order in which the calls ended.
    kept : object
        The outermost layer's cache. What cannot be reached from it was dropped, and does not count.
    given : iterable of array
        The caller's arrays. Their memory may be part of a larger array, which does not count.
    layer : Layer
        Its parameters do not count.
    """
    counted = {id(owner(p.value)) for p in layer.named_parameters().values()}
    sizes = {id(owner(array)): int(array.nbytes) for array in given if is_array(array)}
    alive = {id(owner(array)) for array in arrays_in(kept)}
    totals = []
    for cache in caches:
        total = 0
        for array in arrays_in(cache):
            base = owner(array)
            if id(base) in alive and id(base) not in counted:
                counted.add(id(base))
                total += sizes.get(id(base), int(base.nbytes))
        totals.append(total)
    return totals


def owner(array: Array) -> Array:
    """Return the array whose memory this one is a view of: it stays in memory as a whole."""
    while is_array(base := getattr(array, "base", None)):
        array = base
    return array


def arrays_in(cache: Any) -> Iterator[Array]:
    """Yield the arrays reached from a cache through containers, objects and closures."""
    visited: set[int] = set()
    waiting = [cache]
    while waiting:
        item = waiting.pop()
        if item is None or isinstance(item, _OPAQUE) or id(item) in visited:
            continue
        visited.add(id(item))
        if is_array(item):
            yield item
        elif not isinstance(item, Layer | Parameter):
            # A function also refers to the globals of its module.
            inner = item.__closure__ if isinstance(item, FunctionType) else item
            waiting += gc.get_referents(inner)
