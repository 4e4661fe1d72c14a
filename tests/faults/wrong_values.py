"""What can stand in place of an argument."""

import math
import pathlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


def some_function(*arguments: Any) -> Any:
    return 1.0


class SomeClass:
    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments


def _evaluate(values: str) -> dict[str, Callable[[], Any]]:
    known = {"np": np, "nan": math.nan, "inf": math.inf}
    return {value: partial(eval, value, known) for value in values.split("; ")}


VALUES: dict[str, Callable[[], Any]] = {
    **_evaluate(
        "None; True; False; -1; 0; 1; 0.0; 1.5; 2.0; -0.5; nan; inf; 1j; 10**30; -10**30; '1'; ''; "
        "'true'; 'a('; b'x'; []; [1]; [None, None]; (); {}; {'a': 1}; {1: None}; set(); object()"
    ),
    "a function": lambda: some_function,
    "a class": lambda: SomeClass,
    "a Path": lambda: pathlib.Path("nowhere"),
    "a memoryview": lambda: memoryview(b"abcd"),
    "a generator": lambda: np.random.default_rng(3),
    "a RandomState": lambda: np.random.RandomState(3),
    **_evaluate("np.float32(0.5); np.float64('nan'); np.int64(3); np.bool_(True); np.str_('x')"),
    "0-d float": lambda: np.array(0.5),
    "0-d int": lambda: np.array(2),
    "0-d str": lambda: np.array("x"),
    "3 floats": lambda: np.ones(3),
    "3 float32": lambda: np.ones(3, "float32"),
    "3 int": lambda: np.arange(3),
    "3 bool": lambda: np.array([True, False, True]),
    "no floats": lambda: np.zeros(0, "float32"),
    "2 x 2 object": lambda: np.array([[None, "x"], [1, object()]], dtype=object),
}

_DTYPES = "bool", "complex", "float16", "float32", "float64", "longdouble", "object", "str"
ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "as int": lambda x: np.nan_to_num(x).astype("int64"),
    "as uint8": lambda x: np.abs(np.nan_to_num(x)).astype("uint8"),
    **{f"as {dtype}": lambda x, dtype=dtype: x.astype(dtype) for dtype in _DTYPES},
    "as datetime": lambda x: np.abs(x.astype("int64")).astype("datetime64[s]"),
    "as a list": lambda x: x.tolist(),
    "as a memoryview": lambda x: memoryview(np.ascontiguousarray(x)),
    "as a masked array": lambda x: np.ma.masked_array(x),
    "as a matrix": lambda x: x.view(np.matrix),
    "in the other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "one axis more": lambda x: x[None],
    "an axis at the end": lambda x: x[..., None],
    "one axis less": lambda x: x[0],
    "flat": lambda x: x.reshape(-1),
    "transposed": lambda x: x.T,
    "empty": lambda x: x[:0],
    "a single entry": lambda x: x.reshape(-1)[:1],
    **{f"axis {k} longer": lambda x, k=k: np.concatenate([x, x.take([0], k)], k) for k in range(4)},
    **{f"axis {k} of 1": lambda x, k=k: x.take([0], k) for k in range(4)},
    **{f"axis {k} of 0": lambda x, k=k: x.take([], k) for k in range(4)},
    "minus one": lambda x: x - np.ones((), x.dtype) if x.dtype.kind == "i" else x[:0],
    "plus 99": lambda x: x + 99 if x.dtype.kind == "i" else x[:0],
}


def strided(x: np.ndarray) -> np.ndarray:
    wide = np.repeat(x, 2, axis=-1) if x.ndim else x
    return wide[..., ::2] if x.ndim else wide


def read_only(x: np.ndarray) -> np.ndarray:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


SAME: dict[str, Callable[[Any], Any]] = {
    "as np.int64": np.int64,
    "as np.float64": np.float64,
    "as np.str_": np.str_,
    "Fortran order": np.asfortranarray,
    "every other entry": strided,
    "reversed twice": lambda x: np.ascontiguousarray(x[::-1])[::-1] if x.ndim else x,
    "read-only": read_only,
}
"""Other ways to write the valid value."""


def same_values(valid: Any) -> list[str]:
    """Return which of them there are for a value."""
    if isinstance(valid, np.ndarray):
        return ["Fortran order", "every other entry", "reversed twice", "read-only"]
    kinds = {int: ["as np.int64"], float: ["as np.float64"], str: ["as np.str_"]}
    return kinds.get(type(valid), [])
