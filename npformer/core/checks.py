"""Checks of what users pass. Errors say what came, what was expected, and what to do."""

import json
import os
import sys
from collections.abc import Collection, Mapping, Set
from contextlib import suppress
from contextvars import ContextVar
from math import inf, nan
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core.arrays import backend_of
from npformer.core.backend import Array, Module
from npformer.core.support.wording import a_type, add_article, describe, did_you_mean

FLOATS = ("float32", "float64")
_FLOAT_CODES = "fd"  # their letters in NumPy, which are ten times as fast to compare
_USUAL = [{(np.ndarray, np.dtype(name))} for name in FLOATS]
MOST_LAYERS = 1 << 16
"""Each layer of an encoder is an object; with more of them, building one would seem to hang."""

complex_step: ContextVar[bool] = ContextVar("complex_step", default=False)
"""Whether `floating` takes complex numbers: for `npformer.proof.complex_step` only."""


def floating(**arrays: Array) -> Module:
    """Check that arrays are all float32 or all float64, on one backend, and return its module.

    The keywords are what the user calls the arrays.
    """
    if {(type(x), getattr(x, "dtype", None)) for x in arrays.values()} in _USUAL:
        return np  # the usual case
    backend = backend_of(**arrays)
    if complex_step.get():
        return backend.module
    first = next(iter(arrays))
    dtype = arrays[first].dtype
    if dtype.char not in _FLOAT_CODES:
        raise TypeError(
            f"{first} has dtype {dtype}; expected float32 or float64. "
            f"Convert it with {first}.astype('float32')"
        )
    for name, x in arrays.items():
        if x.dtype != dtype:
            raise TypeError(
                f"{first} has dtype {dtype} and {name} has dtype {x.dtype}; expected one dtype. "
                f"Nothing is cast silently: write {first}.astype({x.dtype.name!r}) or "
                f"{name}.astype({dtype.name!r})"
            )
    return backend.module


def gradient(dy: Array, like: tuple[int, ...], name: str = "dy", of: str = "") -> Module:
    """Check that a gradient has the shape of what the forward pass returned; return its module.

    Its dtype may be wider or narrower: a user's layer may compute in float64.
    """
    if type(dy) is np.ndarray and dy.shape == like and dy.dtype.char in _FLOAT_CODES:
        return np  # the usual case
    module = floating(**{name: dy})
    shape(name, dy, like, f"That is the shape of {of or 'what the forward pass returned'}")
    return module


def sequences(
    x: Array, d_model: int | None = None, max_len: int | None = None, why: str = "", **others: Array
) -> Module:
    """Check that x is (batch, length, d_model), of floats like the others; return their module."""
    module = floating(x=x, **others)
    if x.ndim != 3 or d_model not in (None, x.shape[2]):
        shape("x", x, ("batch", "length", d_model or "d_model"), why)
    if max_len is not None:
        at_most(x, max_len)
    return module


def shape(name: str, x: Array, expected: tuple[int | str | None, ...], why: str = "") -> None:
    """Check the shape of the array that the user calls `name`.

    In `expected`, a number must match, a word matches any size, and None at the beginning for
    any number of axes. `why` is a sentence for the error.
    """
    if x.shape != expected and not _fits(x.shape, expected):
        open_ended = bool(expected) and expected[0] is None
        sizes = expected[1:] if open_ended else expected
        pattern = ", ".join(["..."] * open_ended + [str(size) for size in sizes])
        comma = "," if len(sizes) == 1 and not open_ended else ""
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; expected ({pattern}{comma}). {why}".rstrip(". ")
        )


def _fits(actual: tuple[int, ...], expected: tuple[int | str | None, ...]) -> bool:
    if expected[:1] == (None,):
        expected = expected[1:]
        actual = actual[max(0, len(actual) - len(expected)) :]
    return len(actual) == len(expected) and all(
        n == size or isinstance(size, str) for n, size in zip(actual, expected, strict=True)
    )


def choice(name: str, value: object, choices: Collection[str], hint: bool = True) -> str:
    """Return `value`, one of a few words, checked; without `hint`, the error suggests none."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(map(repr, choices)) + (did_you_mean(value, choices) if hint else "")
        raise ValueError(f"{name} is {describe(value)}; expected one of {words}")
    return value


def misfits(arrays: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Return how names, shapes and dtypes differ from those expected; "" if they do not."""
    problems = [f"{name} is missing" for name in expected if name not in arrays]
    problems += [f"{name} is unknown" for name in arrays if name not in expected]
    for name, like in expected.items():
        array = arrays.get(name, like)
        if array.shape != like.shape or array.dtype != like.dtype:
            problems.append(
                f"{name} has shape {array.shape} and dtype {array.dtype}, expected "
                f"{like.shape} and {like.dtype}"
            )
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


def flag(name: str, value: object) -> bool:
    """Return `value` after checking that it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {describe(value)}; expected True or False")
    return value


def text(name: str, value: object) -> None:
    """Check that `value` is a text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {describe(value)}; expected a text")


def instance(name: str, value: object, kind: type, advice: str = "") -> None:
    """Check that `value` is an object of a class; `advice` is a sentence for the error."""
    if not isinstance(value, kind):
        what = f"the class {value.__name__}" if isinstance(value, type) else a_type(value)
        expected = f"{add_article(kind.__name__)}. {advice}".rstrip(". ")
        raise TypeError(f"{name} is {what}; expected {expected}")


def whole(name: str, value: object, at_least: int, at_most: int = sys.maxsize) -> int:
    """Return `value` as an int after checking that it is a whole number in a range."""
    fits = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not fits or not at_least <= int(value) <= at_most:  # type: ignore[call-overload]
        up_to = f" and at most {at_most}" if fits and int(value) > at_most else ""  # type: ignore[call-overload]
        raise ValueError(
            f"{name} is {describe(value)}; expected a whole number of at least {at_least}{up_to}"
        )
    return int(value)  # type: ignore[call-overload,no-any-return]


def positive(name: str, value: object) -> int:
    """Return `value` as an int after checking that it is a whole number of at least 1."""
    return whole(name, value, at_least=1)


def number(name: str, value: object, *, above: float) -> float:
    """Return `value` as Python's float after checking that it is finite and above a bound."""
    number = _float(value)
    if not above < number < inf:
        raise ValueError(f"{name} is {describe(value)}; expected a number above {above:g}")
    return number


def not_negative(name: str, value: object) -> float:
    """Return `value` as Python's float after checking that it is finite and at least 0."""
    number = _float(value)
    if not 0.0 <= number < inf:
        expected = "a finite number" if number == inf else "0 or more"
        raise ValueError(f"{name} is {describe(value)}; expected {expected}")
    return number


def rate(name: str, value: object) -> float:
    """Return `value` as Python's float after checking that it is a probability below 1."""
    number = _float(value)
    if not 0.0 <= number < 1.0:
        expected = "a number from 0 up to, not including, 1"
        raise ValueError(f"{name} is {describe(value)}; expected {expected}")
    return number


def weights(name: str, value: Any) -> np.ndarray:
    """Return weights as float64 on the host: finite numbers of at least 0."""
    ordered(name, value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # rows of several lengths, or on another device
        array = np.zeros(())
    if array.ndim == 0 or array.dtype.kind not in "iuf":
        raise TypeError(f"{name} is {a_type(value)}; expected numbers, one for each entry")
    numbers = array.astype("float64")
    wrong = ~(np.isfinite(numbers) & (numbers >= 0.0))
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} holds {numbers[index]} at {index[0] if len(index) == 1 else index}; expected "
            "finite numbers of at least 0. 0 leaves an entry out"
        )
    return numbers


def _float(value: object) -> float:
    """Return Python's float, as NumPy's would widen float32 arrays; NaN if this is no number."""
    if type(value) is float:
        return value  # the usual case
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # an int beyond 1.8e308
            return float(value)
    return nan


def ordered(name: str, value: object) -> None:
    """Check that `value` is no set and no mapping, whose entries have no place, and hides none."""
    if isinstance(value, Mapping | Set):
        raise TypeError(f"{name} is {a_type(value)}; expected a list, whose entries have an order")
    if isinstance(value, np.ndarray):
        backend_of(**{name: value})


def plain_values(name: str, value: object) -> None:
    """Check that `value` is a mapping of texts to values that JSON can hold."""
    instance(name, value, Mapping)
    for key in value:  # type: ignore[attr-defined]
        text(f"a key of {name}", key)
    try:
        json.dumps(dict(value))  # type: ignore[call-overload]
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"{name} holds what JSON cannot ({error}); expected texts, numbers, True, False, None, "
            "and lists and mappings of them"
        ) from error


def path(name: str, value: object) -> Path:
    """Return `value` as a path after checking that it is one."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise TypeError(f"{name} is {describe(value)}; expected a text or a pathlib.Path")
    if not value or "\0" in os.fspath(value):
        raise ValueError(f"{name} is {describe(value)}; expected the name of a file")
    return Path(value)


def has_tokens(name: str, x: Array) -> None:
    """Check that sequences, (batch, length, ...), are at least one token long."""
    if x.shape[1] == 0:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; expected at least one token, not 0")


def filled(name: str, x: Array, why: str) -> None:
    """Check that neither of the last two axes has size 0; `why` is a sentence."""
    if 0 in x.shape[-2:]:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; expected no axis of size 0. {why}")


def at_most(x: Array, max_len: int) -> None:
    """Check that sequences, (batch, length, ...), are from 1 to `max_len` tokens long."""
    if not 1 <= x.shape[1] <= max_len:
        has_tokens("x", x)
        raise ValueError(
            f"x has length {x.shape[1]}; expected at most max_len = {max_len}. "
            "Truncate the sequence, or build the model with a larger max_len"
        )


def on_host_or(name: str, x: Array, model: Any) -> None:
    """Check that `x` is an array on the host or on ``model.backend``."""
    backend = "numpy" if type(x) is np.ndarray else backend_of(**{name: x}).name
    if backend != "numpy" and model.backend != backend:
        raise TypeError(
            f"{name} is a {backend} array and the model is on {model.backend}; expected a host "
            f"array, which is uploaded, or one on the model's backend. Move the model: "
            f"model.to({backend!r}), or the array: npformer.to_numpy({name})"
        )


def mask(name: str, x: Array, expected: tuple[int | str | None, ...]) -> None:
    """Check a mask: boolean, True = keep, of the shape expected."""
    boolean(name, x)
    shape(name, x, expected, "One entry for each token")


def boolean(name: str, x: Array) -> None:
    """Check that a mask of any shape is boolean."""
    if x.dtype.char != "?":
        raise TypeError(
            f"{name} has dtype {x.dtype}; expected a boolean array in which True means keep. "
            f"Write {name} = {name} != 0 if ones mark the tokens to keep, {name} = {name} == 0 if "
            "ones mark the padding, or if it is added to scores (0 and -inf)"
        )
