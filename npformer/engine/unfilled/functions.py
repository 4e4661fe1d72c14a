"""What NumPy's functions, and the namespace of plain passes, return for arrays without numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.core import Backend
from npformer.core.arrays import NUMPY, register_stand_in
from npformer.engine.unfilled.arrays import RULES, Unfilled, settle, unfilled


def _where(condition: Any, *values: Any) -> Any:
    if not values:
        return settle(np.nonzero(np.asarray(condition)))
    dtype = np.result_type(*(x.dtype if isinstance(x, np.ndarray) else x for x in values))
    shape = np.broadcast_shapes(np.shape(condition), *(np.shape(x) for x in values))
    return unfilled(shape, dtype)


def _concatenate(arrays: Any, axis: int | None = 0, out: Any = None, **options: Any) -> Any:
    if out is not None:
        return out
    arrays = list(arrays)
    dtype = options.get("dtype") or np.result_type(*(x.dtype for x in arrays))
    if axis is None:
        return unfilled((sum(x.size for x in arrays),), dtype)
    first = arrays[0].shape
    axis %= len(first)
    length = sum(x.shape[axis] for x in arrays)
    return unfilled((*first[:axis], length, *first[axis + 1 :]), dtype)


def _einsum(subscripts: str, *operands: Any, out: Any = None, **options: Any) -> Any:
    if out is not None:
        return out
    shape = np.einsum(subscripts, *(_corner(x) for x in operands)).shape
    dtype = np.result_type(*(x.dtype for x in operands))
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    if not arrow or "." in inputs:
        plain = [np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in operands]
        return settle(np.einsum(subscripts, *plain))
    sizes: dict[str, int] = {}
    for names, x in zip(inputs.split(","), operands, strict=True):
        for name, n in zip(names, x.shape, strict=True):
            sizes[name] = max(n, sizes.get(name, 1))
    assert len(shape) == len(output)
    return unfilled(tuple(sizes[name] for name in output), dtype)


def _corner(x: Any) -> Any:
    """Return a single entry of an array, with all its axes."""
    return np.zeros((1,) * np.ndim(x))


def _array_like(x: Any, *fill: Any, dtype: Any = None, shape: Any = None, **options: Any) -> Any:
    shape = x.shape if shape is None else shape
    return unfilled((shape,) if isinstance(shape, int) else tuple(shape), dtype or x.dtype)


def _copy(x: Any, *arguments: Any, **options: Any) -> Any:
    return unfilled(x.shape, x.dtype)


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    if np.ndim(a) <= 2 and np.ndim(b) <= 2:
        return np.matmul(a, b) if out is None else out
    inner = np.shape(b)[:-2] + np.shape(b)[-1:] if np.ndim(b) > 1 else ()
    return unfilled((*np.shape(a)[:-1], *inner), np.result_type(a, b))


def _repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    index = np.repeat(np.arange(x.size if axis is None else x.shape[axis]), repeats)
    return np.take(x, index, axis=axis)


def _broadcast_to(x: Any, shape: Any, subok: bool = False) -> Any:
    return np.lib.stride_tricks.as_strided(
        x, tuple(shape), _strides_to(x, tuple(shape)), subok=True
    )


def _strides_to(x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    np.broadcast_shapes(x.shape, shape)  # which raises the error
    missing = len(shape) - x.ndim
    strides = [
        0 if x.shape[k] == 1 != shape[missing + k] else stride for k, stride in enumerate(x.strides)
    ]
    return (*(0,) * missing, *strides)


def _write_nothing(*arguments: Any, **options: Any) -> None:
    """Write nothing."""


RULES.update(
    {
        np.where: _where,
        np.concatenate: _concatenate,
        np.einsum: _einsum,
        np.empty_like: _array_like,
        np.zeros_like: _array_like,
        np.ones_like: _array_like,
        np.full_like: _array_like,
        np.copy: _copy,
        np.dot: _dot,
        np.repeat: _repeat,
        np.broadcast_to: _broadcast_to,
        np.copyto: _write_nothing,
        np.put: _write_nothing,
        np.putmask: _write_nothing,
        np.place: _write_nothing,
        np.put_along_axis: _write_nothing,
    }
)


class Transforms:
    """The functions of `scipy.fft`: their shapes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(NUMPY.fft(), name)

    def fft(self, x: Any, n: int | None = None, axis: int = -1, **options: Any) -> Any:
        """Return an array as long as the transform."""
        return _spectrum(x, n or x.shape[axis], axis, _complex(x.dtype))

    ifft = fft

    def fft2(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """Return an array of the shape of x."""
        return unfilled(x.shape, _complex(x.dtype))

    ifft2 = fft2
    fftn = fft2
    ifftn = fft2

    def rfft(self, x: Any, n: int | None = None, axis: int = -1, **options: Any) -> Any:
        """Return an array half as long as the transform, and one more."""
        return _spectrum(x, (n or x.shape[axis]) // 2 + 1, axis, _complex(x.dtype))

    def irfft(self, x: Any, n: int | None = None, axis: int = -1, **options: Any) -> Any:
        """Return an array as long as the transform."""
        return _spectrum(x, n or 2 * (x.shape[axis] - 1), axis, np.zeros(1, x.dtype).real.dtype)


def _complex(dtype: Any) -> Any:
    return np.result_type(dtype, np.complex64)


def _spectrum(x: Any, length: int, axis: int, dtype: Any) -> Any:
    axis %= x.ndim
    return unfilled((*x.shape[:axis], length, *x.shape[axis + 1 :]), dtype)


class Namespace:
    """NumPy's functions, of which those that make arrays make unfilled ones."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any = float, **options: Any) -> Any:
        """Return an unfilled array of this shape."""
        return unfilled((shape,) if isinstance(shape, int) else tuple(shape), dtype)

    zeros = empty
    ones = empty

    def full(self, shape: Any, value: Any, dtype: Any = None, **options: Any) -> Any:
        """Return an unfilled array of this shape."""
        return self.empty(shape, np.asarray(value).dtype if dtype is None else dtype)

    def asarray(self, x: Any, dtype: Any = None, **options: Any) -> Any:
        """Return x, or an array made from it."""
        if not isinstance(x, Unfilled):
            return np.asarray(x, dtype, **options)
        return x if dtype is None else x.astype(dtype, copy=False)

    def ascontiguousarray(self, x: Any, dtype: Any = None) -> Any:
        """Return x, or a copy that lies in memory in order."""
        if not isinstance(x, Unfilled):
            return np.ascontiguousarray(x, dtype)
        return x if x.flags.c_contiguous else x.copy()


TRANSFORMS = Transforms()

UNFILLED = Backend(
    name="numpy",
    module=Namespace(),
    array_type=Unfilled,
    upload=lambda x: x,
    download=lambda x: x,
    erfcx=NUMPY.erfcx,
    fft=lambda: TRANSFORMS,
    add_at=lambda target, indices, values: None,
    device=NUMPY.device,
)
register_stand_in(UNFILLED)
