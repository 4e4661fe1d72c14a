"""What the values of a check leave unseen: zeros, float32's digits, sizes that coincide."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from npformer.proof.problem import Problem
from npformer.proof.report import TensorReport
from npformer.proof.results import Results, gradients_of
from npformer.proof.rules import move, small_move

FLOAT32_STEP = float(np.finfo(np.float32).eps ** (1 / 3))
"""The step of central differences if y has the digits of float32."""

FLOAT32_TOLERANCE = 1e-2
"""The largest error that passes then: the differences themselves have two or three digits."""

COARSE = 2.0**12
"""Numbers that are whole multiples of 1 / COARSE may be exact by themselves."""


def _copy_elsewhere(problem: Problem) -> AbstractContextManager[Problem]:
    """Return the same problem on copies with other values, where the forward pass is defined."""
    try:
        with problem.convert_arrays(lambda x: x + move(x)) as moved:
            moved.forward()
    except Exception:  # such as log(x) below 0: stay nearer
        return problem.convert_arrays(lambda x: x + small_move(x))
    return problem.convert_arrays(lambda x: x + move(x))


def rounded_to(problem: Problem, y: Any) -> str:
    """Return the dtype that y is rounded to, though all arrays are float64; "" if it is not.

    A y in float64 may have been computed in float32. Then all of its entries are numbers of
    float32, also where the arrays are moved to others.
    """
    dtype = np.asarray(y).dtype
    if dtype.kind == "f" and dtype != np.float64:
        return str(dtype)
    if not _has_float32_digits(y):
        return ""
    try:
        with problem.moved(small_move):
            elsewhere, _ = problem.forward()
            return "float32" if _has_float32_digits(elsewhere) else ""
    except Exception:  # not defined there
        return ""


def _has_float32_digits(y: Any) -> bool:
    """Whether all entries are numbers of float32, and some of them are not round numbers."""
    y = np.asarray(y)
    y = y[np.isfinite(y)]
    with np.errstate(over="ignore"):
        single = y.astype(np.float32).astype(np.float64)
    round_numbers = np.round(y * COARSE) / COARSE
    return np.array_equal(single, y) and not np.array_equal(round_numbers, y)


def compare_zeros_elsewhere(
    problem: Problem,
    v: np.ndarray,
    tensors: list[TensorReport],
    compare: Callable[[Problem, str, np.ndarray, np.ndarray, Results], TensorReport],
) -> tuple[list[TensorReport], list[str]]:
    """Compare at other values what is 0 in both ways here: any multiple of 0 would pass.

    `compare` takes a problem, the name of a tensor, its gradient, y, and all gradients. Returns all
    reports, and a note for each tensor that was not compared at all.
    """
    zeros = [
        tensor.name for tensor in tensors if tensor.largest == 0.0 and math.prod(tensor.shape) > 0
    ]
    if not zeros:
        return tensors, []
    reports = {tensor.name: tensor for tensor in tensors}
    notes = []
    with _copy_elsewhere(problem) as moved:
        y, cache = moved.forward()
        y = np.array(y)
        gradients = gradients_of(moved, v.astype(y.dtype), cache) if y.shape == v.shape else {}
        for name in zeros:
            gradient = gradients.get(name, np.zeros(reports[name].shape))
            tensor = compare(moved, name, gradient, y, gradients)
            if tensor.largest == 0.0:
                notes.append(f"{name} was not compared: its derivative is 0, also at other values")
            else:
                reports[name] = tensor
                notes.append(f"{name} was compared at other values, because its derivative is 0")
    return list(reports.values()), notes


def coinciding_sizes(arrays: dict[str, np.ndarray], also_two: bool = False) -> list[str]:
    """Return a note for each array in which one size is the product of the others.

    `also_two`: also where two sizes are equal.

    A layer norm that divides by batch times length in place of the width is right for an x of shape
    (2, 4, 8).
    """
    notes = []
    for name, x in arrays.items():
        equation = _product_of_sizes(x.shape)
        if also_two and not equation:
            equation = _two_equal_sizes(x.shape)
        if equation:
            notes.append(
                f"{name} has shape {x.shape}, where {equation}: a pass that confuses these sizes "
                "is not noticed. Try a shape without equal sizes, too"
            )
    return notes


def _product_of_sizes(shape: tuple[int, ...]) -> str:
    """Return which size is the product of all others, sizes of 1 aside; "" if none is."""
    sizes = [size for size in shape if size > 1]
    for index, size in enumerate(sizes):
        others = sizes[:index] + sizes[index + 1 :]
        if len(others) > 1 and math.prod(others) == size:
            return f"{' * '.join(map(str, others))} = {size}"
    return ""


def _two_equal_sizes(shape: tuple[int, ...]) -> str:
    """Return which two sizes above 1 are equal; "" if none are."""
    sizes = [size for size in shape if size > 1]
    for size in sizes:
        if sizes.count(size) > 1:
            return f"two sizes are {size}"
    return ""
