"""Kernels for a GPU: how arrays get there, and how results are compared."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import npformer as nf
from npformer.core import arrays as backends
from npformer.engine import EngineContext, gpu
from tests.kernels.gpu import emulated
from tests.kernels.helpers import Case, backward, expected, forward, gradient_for, to_tuple

DTYPES = ("float64", "float32")
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
"""Of the largest entry. In float64 for some hundred operations, each of 1e-16. In float32 rounding
is 6e-8, which sums in another order and a softmax of scores of size 10 raise to some 1e-6."""

ORDERS = (0, 1, 2, 3)
"""Of threads and blocks."""

TRAIN = EngineContext(training=True)


def asarray(x: np.ndarray) -> Any:
    """Bring an array to the device."""
    return nf.asarray(x, backend="cupy")


def upload(x: Any, dtype: str = "float64") -> Any:
    """Bring an array to the device, in `dtype` if it holds floats."""
    if not isinstance(x, np.ndarray):
        return x
    return asarray(x.astype(dtype) if x.dtype.kind == "f" else x)


def download(x: Any) -> np.ndarray:
    return nf.to_numpy(x)


def agree(results: Any, expected: Any, dtype: str = "float64", share: float = 0.0) -> None:
    """Check arrays against each other, relative to the largest entry of each.

    Or relative to a share of the largest of all if that is more: some are 0 but for rounding.
    """
    results, expected = to_tuple(results), to_tuple(expected)
    assert len(results) == len(expected)
    floor = max(share * max(float(np.abs(y).max(initial=0.0)) for y in expected), 1e-30)
    for i, (one, other) in enumerate(zip(results, expected, strict=True)):
        x, y = download(one), np.asarray(other)
        assert backends.backend_of(x=one).name == "cupy", f"result {i} left the device"
        assert x.dtype == dtype, f"result {i}"
        assert x.shape == y.shape, f"result {i}"
        assert np.isfinite(x).all() == np.isfinite(y).all(), f"result {i}"
        scale = max(float(np.abs(y).max(initial=0.0)), floor)
        error = float(np.abs(x - y).max(initial=0.0)) / scale
        assert error <= TOLERANCE[dtype], f"result {i} differs by {error:.1e}"


def same_in_any_order(compute: Callable[[], Any]) -> Any:
    """Return what `compute` gives, after a check that no order of threads changes a bit of it."""
    first = None
    for order in ORDERS:
        with emulated.use_order(order):
            results = [download(x) for x in to_tuple(compute())]
        if first is None:
            first = results
        for x, y in zip(results, first, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=f"threads in order {order}")
    with emulated.use_order(0):
        return compute()


def move_case(case: Case, dtype: str = "float64") -> Case:
    """Return the case with all that it holds on the device."""
    arrays, settings = (
        tuple(upload(x, dtype) for x in values) for values in (case.arrays, case.others)
    )
    return replace(case, arrays=arrays, others=settings, mask=upload(case.mask))


def run(case: Case, dtype: str = "float64", **options: Any) -> Any:
    """Return y, and unless the context says that none is wanted the gradients, of a kernel."""
    there = move_case(case, dtype)
    context = there.context(**options)
    y, cache = forward(there, there.arrays, context, gpu.KERNELS)
    if not context.keep:
        return y
    dy = gradient_for(download(y))
    device_dy = upload(dy, dtype) if dy.ndim else float(dy)
    return (y, *backward(there, device_dy, cache, gpu.KERNELS))


def assert_parity(case: Case, dtype: str = "float64", share: float = 0.0) -> None:
    """Check that a kernel computes what its pairs do, whatever the order of threads."""
    pairs = expected(case, dtype)
    agree(same_in_any_order(lambda: run(case, dtype)), pairs, dtype, share)
    agree(run(case, dtype, keep=False), pairs[0], dtype)
