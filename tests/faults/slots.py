"""Slots: the arguments of a valid call, and which other values each of them may take.

`takes` is what the documentation says, written down a second time. A value that a slot does not
take has to be refused in words; one that it takes may be refused too, if it does not fit the rest.
"""

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

Takes = Callable[[Any, Any], bool]
"""(value, the valid one) -> whether the argument may have that value."""


@dataclass(frozen=True)
class Slot:
    """One argument of a valid call."""

    make: Callable[[], Any]  # its valid value, a new one for each call
    takes: Takes
    same: tuple[str, ...] = ()  # names in `wrong_values.SAME`: they must give the same result
    optional: bool = False  # None is fine
    large: bool = True  # whether to try numbers whose only fault is to ask for too much work


def _slot(value: Any, takes: Takes, *same: str, **settings: Any) -> Slot:
    return Slot(lambda: deepcopy(value), takes, same, **settings)


def or_none(slot: Slot) -> Slot:
    """The argument may be left out, or be None."""
    return replace(slot, optional=True)


# Numbers and words --------------------------------------------------------------------------------


def count(value: int, at_least: int = 1, large: bool = True, words: tuple[str, ...] = ()) -> Slot:
    """A whole number; some arguments also take a few words."""
    return _slot(
        value,
        lambda v, _: (is_whole(v) and v >= at_least) or (isinstance(v, str) and v in words),
        "as np.int64",
        "as np.uint8",
        large=large,
    )


def is_whole(v: object) -> bool:
    return isinstance(v, Integral) and not isinstance(v, bool)


def is_number(v: object) -> bool:
    """A number, or an array of floats without axes."""
    if isinstance(v, np.ndarray):
        return v.ndim == 0 and v.dtype.kind == "f"
    return isinstance(v, Real) and not isinstance(v, bool)


def number(value: float, fits: Callable[[float], bool]) -> Slot:
    """A finite number in a range."""

    def takes(v: Any, _: Any) -> bool:
        real = isinstance(v, Real) and not isinstance(v, bool)
        return real and abs(float(v)) < 1e300 and fits(float(v))

    return _slot(value, takes, "as np.float32", "as np.float64")


def positive(value: float) -> Slot:
    return number(value, lambda v: v > 0.0)


def not_negative(value: float) -> Slot:
    return number(value, lambda v: v >= 0.0)


def rate(value: float) -> Slot:
    return number(value, lambda v: 0.0 <= v < 1.0)


def flag(value: bool, *words: str) -> Slot:
    """True or False; NumPy's are left open."""
    return _slot(
        value, lambda v, _: isinstance(v, bool | np.bool_) or (isinstance(v, str) and v in words)
    )


def choice(value: str, *words: str) -> Slot:
    return _slot(value, lambda v, _: isinstance(v, str) and v in (value, *words), "as np.str_")


def text(value: str) -> Slot:
    """Any text."""
    return _slot(value, lambda v, _: isinstance(v, str), "as np.str_")


def seed(value: int = 0) -> Slot:
    return _slot(
        value,
        lambda v, _: isinstance(v, np.random.Generator) or (is_whole(v) and v >= 0),
        "as np.int64",
        "as a generator",
    )


def dtype(value: str = "float32") -> Slot:
    return choice(value, "float32", "float64")


# Arrays -------------------------------------------------------------------------------------------


def array(value: np.ndarray, kinds: str, axes: str = "", any_dtype: bool = False) -> Slot:
    """An array of some kinds of dtype (``dtype.kind``).

    In `axes` each letter is an axis: "=" for a size that follows from the other arguments, "f" for
    one that is free; "*" in front stands for any leading axes. By default all sizes are fixed.
    `any_dtype`: it is the only array, so that float32 and float64 both fit.
    """
    pattern = axes or "=" * value.ndim

    def takes(v: Any, valid: Any) -> bool:
        if not isinstance(v, np.ndarray | np.generic) or v.dtype.kind not in kinds:
            return False
        if v.dtype.kind == "f" and v.dtype.itemsize not in (4, 8):
            return False
        if not any_dtype and v.dtype.kind == "f" and v.dtype.itemsize != valid.dtype.itemsize:
            return False
        last = pattern.lstrip("*")
        if v.ndim < len(last) or (v.ndim > len(last) and not pattern.startswith("*")):
            return False
        sizes = zip(last[::-1], v.shape[::-1], valid.shape[::-1], strict=False)
        return all(axis == "f" or n == right for axis, n, right in sizes)

    return _slot(value, takes, "Fortran order", "every other entry", "reversed twice", "read-only")


def floats(value: np.ndarray, axes: str = "", any_dtype: bool = False) -> Slot:
    return array(value, "f", axes, any_dtype)


def ids(value: np.ndarray, axes: str = "") -> Slot:
    return array(value, "iu", axes)


def mask(value: np.ndarray, axes: str = "") -> Slot:
    return or_none(array(value, "b", axes))


# Anything else ------------------------------------------------------------------------------------


def an(make: Callable[[], Any], *kinds: type, fits: Callable[[Any], bool] | None = None) -> Slot:
    """An object of some classes, which `make` makes anew for each call."""
    return Slot(make, lambda v, _: isinstance(v, kinds) and (fits is None or fits(v)))


def function(value: Callable[..., Any]) -> Slot:
    return Slot(lambda: value, lambda v, _: callable(v))


def path(make: Callable[[], Any]) -> Slot:
    return Slot(make, lambda v, _: isinstance(v, str | os.PathLike), ("as a str",))


def anything(make: Callable[[], Any]) -> Slot:
    """Every value is fine, or is refused in words."""
    return Slot(make, lambda v, _: True)
