"""The complex step: derivatives that are exact up to rounding.

For a function that is analytic, f(x + ih) = f(x) + ih f'(x) - h^2 f''(x) / 2 - ..., and so::

    f'(x) = Im f(x + ih) / h

A central difference subtracts nearly equal numbers, so its h cannot be very small. Nothing is
subtracted here, so h may be 1e-30 (Squire and Trapp, 1998, SIAM Review 40).

Some functions are not analytic, but can be extended to x + ih (Martins, Sturdza and Alonso, 2003,
ACM TOMS 29). Comparisons and the maximum look at the real part, and ``|x|`` is x or -x. The real
and the imaginary part of a Fourier transform are two functions of real numbers, each extended on
its own. An operation that would silently drop the imaginary part raises `NotAnalytic`.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from npformer.core import checks

STEP = 1e-30
REFUSED = frozenset({np.absolute, np.conjugate, np.sign})


class NotAnalytic(Exception):
    """The complex step does not apply; the message says why."""


class ComplexArray(np.ndarray):
    """Complex numbers x + ih u, which refuse operations that drop the imaginary part."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        inputs = tuple(map(_bare, inputs))
        if ufunc in REFUSED:
            if ufunc is np.absolute and method == "__call__" and out is None:
                (x,) = inputs
                return _guard(np.where(x < 0.0, -x, x))  # complex numbers compare by the real part
            raise NotAnalytic(f"{ufunc.__name__} is not analytic")
        if out is not None:
            options["out"] = tuple(map(_bare, out))
        options.pop("subok", None)
        return _guard(getattr(ufunc, method)(*inputs, **options))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if (function.__module__ or "").startswith("numpy.fft"):
            return _transform(function, *args, **kwargs)
        return _guard(super().__array_function__(function, types, args, kwargs))

    def _refuse(self) -> Any:
        raise NotAnalytic("a real or an imaginary part is not analytic")

    real = imag = property(_refuse)


class _Parts:
    """The real and the imaginary part of a Fourier transform, as functions of real numbers."""

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    def __mul__(self, other: "_Parts") -> "_Parts":
        real = self.real * other.real - self.imag * other.imag
        return _Parts(real, self.real * other.imag + self.imag * other.real)


class _Fourier:
    """A backend of scipy.fft for arrays that take a complex step."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(transform: Any, args: Any, kwargs: Any) -> Any:
        import scipy.fft

        with scipy.fft.skip_backend(_Fourier):  # type: ignore[arg-type]
            return _transform(transform, *args, **kwargs)


def _transform(transform: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(x, _Parts):  # a second transform: both parts of x are real, and take a step
        real, imag = np.asarray(x.real), np.asarray(x.imag)
        of_x, of_u = real.real + 1j * imag.real, real.imag + 1j * imag.imag
        return _guard(transform(of_x, *args, **kwargs) + 1j * transform(of_u, *args, **kwargs))
    x = np.asarray(x)
    of_x, of_u = transform(x.real, *args, **kwargs), transform(x.imag, *args, **kwargs)
    return _Parts(_guard(of_x.real + 1j * of_u.real), _guard(of_x.imag + 1j * of_u.imag))


def _bare(x: Any) -> Any:
    return x.view(np.ndarray) if type(x) is ComplexArray else x


def _guard(result: Any) -> Any:
    """Return complex results as `ComplexArray`, and others unchanged."""
    if isinstance(result, (np.ndarray, np.generic)):  # most results
        return np.asarray(result).view(ComplexArray) if result.dtype.kind == "c" else result
    if isinstance(result, (tuple, list)):
        return type(result)(map(_guard, result))
    return result


def complex_copy(x: np.ndarray) -> np.ndarray:
    """Return a copy of `x` that can take a complex step."""
    return x.astype(np.complex128).view(ComplexArray)


def derivative(run: Callable[[], tuple[Any, Any]], array: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the derivative of y along u, entry by entry, where run() gives (y, cache).

    `run` reads `array`, which `complex_copy` made and which has the shape of u. Raises
    `NotAnalytic` if the function does not run on complex numbers or returns real ones.
    """
    original = array.copy()
    try:
        array += 1j * STEP * u
        with _complex_world():
            y = np.array(run()[0])  # a copy: y may be the very array that is restored below
    except NotAnalytic:
        raise
    except Exception as error:  # it ran on real numbers, so the complex ones are the reason
        raise NotAnalytic(f"it does not run on complex numbers ({error})") from error
    finally:
        array[...] = original
    if y.dtype.kind != "c":
        raise NotAnalytic("its result is real")
    if not np.isfinite(y).all():  # for example a quotient of infinities
        raise NotAnalytic("its result is not finite on complex numbers")
    return np.asarray(y.imag / STEP)


@contextmanager
def _complex_world() -> Iterator[None]:
    """Let npformer's functions take complex numbers, and make dropping imaginary parts an error."""
    import scipy.fft

    token = checks.complex_step.set(True)
    try:
        with (
            scipy.fft.set_backend(_Fourier),  # type: ignore[arg-type]
            warnings.catch_warnings(action="error", category=np.exceptions.ComplexWarning),
            np.errstate(all="ignore"),
        ):
            yield
    finally:
        checks.complex_step.reset(token)
