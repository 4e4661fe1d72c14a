"""A user's arrays: on the host or in files, one for each input, with equally many samples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import Layer, Padding, a_type
from npformer.core.inputs import Sequences, as_inputs
from npformer.data.stored import ShardedArray, read

Data = Sequence[Any]
"""(x, y), (x, y, mask) or (x, y, mask, types), on the host or in files; mask may be None. For a
model with two inputs, x, mask and types are tuples with one for each."""


def labelled_inputs(model: Any, name: str, data: Data) -> tuple[tuple[Sequences, ...], Any]:
    """Return the inputs and the targets of some data, after checking their types and lengths."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3, 4):
        size = f" of {len(data)}" if isinstance(data, tuple | list) else ""
        raise TypeError(
            f"{name} is {a_type(data)}{size}; expected (x, y) or (x, y, mask), or with "
            "token types (x, y, mask, types)"
        )
    x, y, mask, types = model.arrange(*(*data, None, None)[:4])
    inputs = unlabelled_inputs(model, name, x, mask, types)
    _check(f"y in {name}", y, len(inputs[0].x))
    return inputs, y


def unlabelled_inputs(
    model: Layer, name: str, x: Any, mask: Any = None, types: Any = None
) -> tuple[Sequences, ...]:
    """Return the inputs of some data, after checking their types and lengths."""
    inputs, n, where = as_inputs(model, x, mask, types), None, "" if name == "x" else f" in {name}"
    for k, each in enumerate(inputs):
        for part, array in (("x", each.x), ("mask", each.mask), ("types", each.types)):
            if part == "x" or array is not None:
                _check(f"{part}{f'[{k}]' if len(inputs) > 1 else ''}{where}", array, n)
                n = len(inputs[0].x)
    if n == 0:
        raise ValueError(f"{name} has no samples; expected at least 1")
    return inputs


def read_inputs(inputs: tuple[Sequences, ...], rows: Any) -> tuple[Sequences, ...]:
    """Return rows of inputs, in files or not, in memory."""

    def some(array: Any) -> Any:
        return None if array is None else read(array, rows)

    return tuple(
        Sequences(some(each.x), each.padding and Padding(some(each.mask)), some(each.types))
        for each in inputs
    )


def is_stored(array: object) -> bool:
    """Return whether an array stays in files, and is to be read a few rows at a time."""
    return isinstance(array, np.memmap | ShardedArray)


def _check(name: str, array: Any, n: int | None) -> None:
    """Check that this is an array, on the host or in files, of n samples if that is known."""
    if not isinstance(array, np.ndarray | ShardedArray):
        raise TypeError(
            f"{name} is {a_type(array)}; expected a NumPy array, in memory or "
            "memory-mapped, or what npformer.data.sharded returns. numpy.asarray makes one from "
            "lists, npformer.to_numpy from arrays on a GPU: batches are uploaded one by one"
        )
    if array.ndim == 0:
        raise ValueError(f"{name} is a single number; expected one entry per sample")
    if n is not None and len(array) != n:
        raise ValueError(f"{name} has {len(array)} samples and x has {n}; expected the same number")
