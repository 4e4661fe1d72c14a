"""Arrays without numbers: they have a shape, a dtype and strides, and no operation computes.

With them a step can run as it is written and cost neither time nor memory. All share one region of
address space, which is never written. What an operation would allocate is counted by the `Ledger`
of the context instead, and taken off again when the last view of it is gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from npformer.engine.unfilled import temporaries
from npformer.engine.unfilled.ledger import Ledger

LEDGER: ContextVar[Ledger | None] = ContextVar("npformer.engine.unfilled.LEDGER", default=None)
"""What counts the memory; None counts nothing."""


class _Region:
    """Address space as large as the largest array so far."""

    memory: Any = np.zeros(0, np.uint8)

    def at_least(self, size: int) -> Any:
        """Return memory of at least this many bytes, which reads as 0."""
        if len(self.memory) < size:
            self.memory = reserve(max(size, 1 << 26))
        return self.memory


def reserve(size: int) -> Any:
    """Return bytes that read as 0, of which the system gives pages only to what is written."""
    try:
        import mmap
    except ImportError:  # where Python has no such files, as in a browser
        return np.zeros(size, np.uint8)
    options = {}
    if hasattr(mmap, "MAP_PRIVATE"):
        reserve_nothing = getattr(mmap, "MAP_NORESERVE", 0)
        options["flags"] = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | reserve_nothing
    return np.frombuffer(mmap.mmap(-1, size, **options), np.uint8)


_region = _Region()
memory_for = _region.at_least


class Lease:
    """The base of an unfilled array: deleted with the last view, it takes the bytes off."""

    __slots__ = ("__array_interface__", "ledger", "memory", "use")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], ledger: Ledger | None) -> None:
        n_bytes = math.prod(shape) * dtype.itemsize
        self.memory = _region.at_least(n_bytes)
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (self.memory.__array_interface__["data"][0], False),
            "version": 3,
        }
        self.ledger = ledger
        if ledger is not None:
            self.use = ledger.add(n_bytes)

    def __del__(self) -> None:
        if self.ledger is not None:
            self.ledger.remove(self.use)


class Unfilled(np.ndarray[Any, Any]):
    """An array without numbers, in which every entry reads as 0."""

    __slots__ = ()

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Return the outputs if they are given; otherwise unfilled ones of the right shapes."""
        if out is not None:
            results = tuple(
                result if given is None else given
                for result, given in zip(_or_nothing(ufunc, out, inputs), out, strict=True)
            )
            return results[0] if len(results) == 1 else results
        return RESULTS[method](ufunc, inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        rule = RULES.get(func)
        if rule is not None:
            return rule(*args, **kwargs)
        return settle(super().__array_function__(func, types, args, kwargs))

    def __getitem__(self, index: Any) -> Any:
        entries = index if isinstance(index, tuple) else (index,)
        if not any(isinstance(entry, (np.ndarray, list)) for entry in entries):
            return super().__getitem__(index)
        positions = np.broadcast_to(np.int8(0), self.shape)
        return unfilled(positions[index].shape, self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write nothing."""

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return a view, or a copy where NumPy needs one."""
        return settle(super().reshape(*shape, **options))

    def ravel(self, order: Any = "C") -> Any:
        """Return a view, or a copy where NumPy needs one."""
        return settle(super().ravel(order))

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy with one axis."""
        return unfilled((self.size,), self.dtype)

    def copy(self, order: Any = "C") -> Any:
        """Return a copy."""
        return unfilled(self.shape, self.dtype)

    def astype(  # type: ignore[override]
        self, dtype: Any, *arguments: Any, copy: bool = True, **options: Any
    ) -> Any:
        """Return a copy of another dtype."""
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return unfilled(self.shape, np.dtype(dtype))

    def fill(self, value: Any) -> None:
        """Write nothing."""

    def take(  # type: ignore[override]
        self, indices: Any, axis: int | None = None, out: Any = None, **options: Any
    ) -> Any:
        """Return what these indices select."""
        return take(self, indices, axis, out)

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:  # type: ignore[override]
        """Return a longer array."""
        return RULES[np.repeat](self, repeats, axis)

    @property
    def owns_memory(self) -> bool:
        """Whether it is no view, and not lent by a workspace."""
        base: Any = self.base
        return type(base) is np.ndarray and type(lease_of(base)) is Lease

    __add__ = temporaries.operator(np.add, is_commutative=True)
    __sub__ = temporaries.operator(np.subtract, is_commutative=False)
    __mul__ = temporaries.operator(np.multiply, is_commutative=True)
    __truediv__ = temporaries.operator(np.true_divide, is_commutative=False)
    __neg__ = temporaries.unary(np.negative)
    __abs__ = temporaries.unary(np.absolute)
    __pow__ = temporaries.square_or_power  # type: ignore[assignment]

    def dot(self, other: Any, out: Any = None) -> Any:
        """Return a product."""
        return np.matmul(self, other)


def unfilled(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a new unfilled array; for no axes, a 0 like NumPy's."""
    dtype = np.dtype(dtype)
    if shape == ():
        return dtype.type(0)
    return np.asarray(Lease(shape, dtype, LEDGER.get())).view(Unfilled)


def existing_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an unfilled array for what is there already, such as a model's weights."""
    return np.asarray(Lease(shape, np.dtype(dtype), None)).view(Unfilled)


def lease_of(x: Any) -> Any:
    """Return what an array is a view of: a lease if it is unfilled."""
    while isinstance(x, np.ndarray):
        x = x.base
    return x


def settle(result: Any) -> Any:
    """Return results of NumPy's functions as unfilled arrays; those that are views stay so."""
    if isinstance(result, (tuple, list)):
        return type(result)(settle(item) for item in result)
    if not isinstance(result, np.ndarray) or result.ndim == 0:
        return result
    if hasattr(lease_of(result), "__array_interface__"):
        return result.view(Unfilled)
    return unfilled(result.shape, result.dtype)


# Shapes and dtypes of results --------------------------------------------------------------------


def _or_nothing(ufunc: Any, out: Any, inputs: Any) -> Any:
    """Return new arrays in the places of those outputs that are None."""
    if all(given is not None for given in out):
        return out
    results = RESULTS["__call__"](ufunc, inputs, {})
    return results if isinstance(results, tuple) else (results,)


def _result_of_call(ufunc: Any, inputs: Any, options: Any) -> Any:
    shape = (
        np.broadcast_shapes(*(np.shape(x) for x in inputs))
        if ufunc.signature is None
        else _shape_of_product(ufunc, [np.shape(x) for x in inputs])
    )
    dtypes = _dtypes(ufunc, tuple(map(_kind, inputs)), options.get("dtype"))
    results = tuple(unfilled(shape, dtype) for dtype in dtypes)
    return results[0] if len(results) == 1 else results


def _kind(x: Any) -> Any:
    """Return an array's dtype, or the type of a Python number, whose precision does not count."""
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return type(x) if type(x) is not bool else np.dtype(bool)
    return np.asarray(x).dtype


@lru_cache(maxsize=1024)
def _dtypes(ufunc: Any, kinds: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """Return the dtypes of the outputs."""
    if dtype is not None:
        return tuple(np.dtype(dtype) for _ in range(ufunc.nout))
    dtypes = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))
    outputs: Any = dtypes[ufunc.nin :]
    return tuple(outputs)


def _shape_of_product(ufunc: Any, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of a result of `np.matmul`, `np.vecdot` and the like."""
    if ufunc is np.matmul:
        a, b = shapes
        outer = np.broadcast_shapes(a[:-2], b[:-2])
        rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
        if a[-1] != b[-2 if len(b) > 1 else -1]:
            raise ValueError(f"matmul of shapes {a} and {b}: the inner axes differ")
        return (*outer, *rows, *columns)
    before, _, after = ufunc.signature.partition("->")
    sizes: dict[str, int] = {}
    outer_shapes = []
    for names, shape in zip(before.strip("()").split("),("), shapes, strict=True):
        axes = [name for name in names.split(",") if name]
        outer_shapes.append(shape[: len(shape) - len(axes)])
        sizes.update(zip(axes, shape[len(shape) - len(axes) :], strict=True))
    core = [sizes[name] for name in after.strip("()").split(",") if name]
    return (*np.broadcast_shapes(*outer_shapes), *core)


def _result_of_reduce(ufunc: Any, inputs: Any, options: Any) -> Any:
    x, axis = inputs[0], options.get("axis", 0)
    numbers = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
    axes = {number % x.ndim for number in numbers}
    shape = tuple(
        1 if k in axes else n
        for k, n in enumerate(x.shape)
        if k not in axes or options.get("keepdims")
    )
    return unfilled(shape, _dtype_of_reduction(ufunc, x.dtype, options.get("dtype")))


@lru_cache(maxsize=256)
def _dtype_of_reduction(ufunc: Any, dtype: Any, asked: Any) -> Any:
    return ufunc.reduce(np.ones(1, dtype), dtype=asked).dtype


def _result_of_accumulate(ufunc: Any, inputs: Any, options: Any) -> Any:
    x = inputs[0]
    return unfilled(x.shape, _dtype_of_reduction(ufunc, x.dtype, options.get("dtype")))


def _result_of_outer(ufunc: Any, inputs: Any, options: Any) -> Any:
    a, b = inputs
    (dtype,) = _dtypes(ufunc, (_kind(a), _kind(b)), options.get("dtype"))
    return unfilled((*np.shape(a), *np.shape(b)), dtype)


def _result_of_reduceat(ufunc: Any, inputs: Any, options: Any) -> Any:
    x, indices = inputs[:2]
    axis = options.get("axis", 0) % x.ndim
    shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
    return unfilled(shape, _dtype_of_reduction(ufunc, x.dtype, options.get("dtype")))


def _write_nothing(ufunc: Any, inputs: Any, options: Any) -> None:
    """Write nothing."""


RESULTS: dict[str, Callable[..., Any]] = {
    "__call__": _result_of_call,
    "reduce": _result_of_reduce,
    "accumulate": _result_of_accumulate,
    "outer": _result_of_outer,
    "reduceat": _result_of_reduceat,
    "at": _write_nothing,
}
"""What each way to call a ufunc results in."""


def take(
    x: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """Return what `np.take` would."""
    if out is not None:
        return out
    if axis is None:
        return unfilled(np.shape(indices), x.dtype)
    axis %= x.ndim
    return unfilled((*x.shape[:axis], *np.shape(indices), *x.shape[axis + 1 :]), x.dtype)


RULES: dict[Any, Callable[..., Any]] = {np.take: take}
"""The functions of NumPy whose own code would compute; `functions` adds the others."""
