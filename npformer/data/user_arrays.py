"""A user's arrays: on the host or in files, one for each input, and of as many samples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.data.batch import per_input
from npformer.data.stored import ShardedArray

Data = Sequence[Any]
"""(x, y), (x, y, mask) or (x, y, mask, types), on the host or in files; mask may be None. For a
model with two inputs, x, mask and types are tuples with one for each."""


def parts_of(name: str, data: Data) -> tuple[Any, ...]:
    """Return inputs, y, masks and types of labelled data; all but y as tuples."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3, 4):
        size = f" of {len(data)}" if isinstance(data, tuple | list) else ""
        raise TypeError(
            f"{name} is a {type(data).__name__}{size}; expected (x, y) or (x, y, mask), or with "
            "token types (x, y, mask, types)"
        )
    x, y, mask, types = (*data, None, None)[:4]
    inputs, masks, its_types = checked_inputs(x, mask, types, f" in {name}")
    _check("y", y, len(inputs[0]), f" in {name}")
    if len(y) == 0:
        raise ValueError(f"{name} has no samples; expected at least 1")
    return inputs, y, masks, its_types


def checked_inputs(
    x: Any, mask: Any = None, types: Any = None, where: str = ""
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Return tuples with x, mask and types of each input; mask and types may be None."""
    inputs = x if isinstance(x, tuple) else (x,)
    n = None
    for k, each in enumerate(inputs):
        _check(f"x[{k}]" if k else "x", each, n, where)
        n = len(inputs[0])
    several = []
    for name, given in (("mask", mask), ("types", types)):
        of_each = (
            given if isinstance(given, tuple) else (given,) * (len(inputs) if given is None else 1)
        )
        if len(of_each) != len(inputs):
            raise ValueError(
                f"{name}{where} is for {len(of_each)} inputs and x for {len(inputs)}; expected "
                f"{per_input(len(inputs))}"
            )
        for k, each in enumerate(of_each):
            if each is not None:
                _check(f"{name}[{k}]" if k else name, each, n, where)
        several.append(of_each)
    return inputs, several[0], several[1]


def _check(name: str, array: Any, n: int | None, where: str) -> None:
    """Check that this is an array, on the host or in files, of n samples if that is known."""
    if isinstance(array, np.ndarray) and array.ndim == 0:
        raise ValueError(f"{name}{where} is a single number; expected one entry per sample")
    if not isinstance(array, np.ndarray | ShardedArray):
        raise TypeError(
            f"{name}{where} is a {type(array).__name__}; expected a NumPy array, in memory or "
            f"memory-mapped, or what npformer.data.sharded returns. Write numpy.asarray({name}), "
            f"or npformer.to_numpy({name}) if it is on a GPU: batches are uploaded one by one"
        )
    if n is not None and len(array) != n:
        raise ValueError(f"{name}{where} has {len(array)} samples and x has {n}; expected as many")
