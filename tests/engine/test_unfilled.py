"""Arrays without numbers: shapes, dtypes and memory are those of NumPy's arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npformer.core import array_module, fft_module
from npformer.engine.unfilled import functions  # noqa: F401 (fills the table of rules)
from npformer.engine.unfilled.arrays import LEDGER, Unfilled, unfilled
from npformer.engine.unfilled.ledger import Ledger

X, W = (3, 4, 6), (6, 5)

EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum of arrays": lambda x, w: x + x[:, :1],
    "sum with a number": lambda x, w: 2.0 * x - 1,
    "wider dtype": lambda x, w: x + np.zeros(6),
    "comparison": lambda x, w: x > 0.0,
    "product of matrices": lambda x, w: x @ w,
    "product with a vector": lambda x, w: x @ w[:, 0],
    "product of a vector": lambda x, w: w[:, 0] @ w,
    "vecdot": lambda x, w: np.vecdot(x, x),
    "sum along an axis": lambda x, w: x.sum(axis=-1, keepdims=True),
    "sum along two": lambda x, w: np.sum(x, axis=(0, 1)),
    "sum of bools": lambda x, w: (x > 0.0).sum(axis=0),
    "mean": lambda x, w: x.mean(axis=1),
    "maximum with an initial value": lambda x, w: x.max(axis=0, initial=0.0),
    "cumulative sum": lambda x, w: np.cumsum(x, axis=1),
    "rows by number": lambda x, w: w[np.array([[0, 1], [2, 3]])],
    "rows by mask": lambda x, w: w[np.array([True, False, True, False, False, True])],
    "take": lambda x, w: np.take(w, np.array([0, 2]), axis=0),
    "slices": lambda x, w: x[1:, ..., ::2],
    "transpose": lambda x, w: x.swapaxes(-1, -2),
    "reshaped": lambda x, w: x.swapaxes(0, 1).reshape(4, -1),
    "where": lambda x, w: np.where(x > 0.0, x, 0.0),
    "concatenate": lambda x, w: np.concatenate([x, x[:1]], axis=0),
    "stack": lambda x, w: np.stack([x, x]),
    "einsum": lambda x, w: np.einsum("bld,de->ble", x, w),
    "einsum without an output": lambda x, w: np.einsum("bld,de", x, w),
    "repeat": lambda x, w: x.repeat(2, axis=1),
    "broadcast": lambda x, w: np.broadcast_to(w, (2, *w.shape)),
    "zeros like it": lambda x, w: np.zeros_like(x),
    "of another dtype": lambda x, w: x.astype("float64"),
    "outer": lambda x, w: np.multiply.outer(w, w),
    "real transform": lambda x, w: fft_module(x).rfft(x, axis=-2),
    "transform back": lambda x, w: fft_module(x).irfft(fft_module(x).rfft(x), n=6),
    "zeros of its namespace": lambda x, w: array_module(x).zeros((2, 3), dtype="float32"),
    "a function without a rule": lambda x, w: np.linalg.pinv(x),
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_result_has_the_shape_and_dtype_of_numpys(expression, dtype):
    expected = expression(np.ones(X, dtype), np.ones(W, dtype))
    result = expression(unfilled(X, dtype), unfilled(W, dtype))
    assert type(result) is Unfilled
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)


@pytest.fixture
def ledger():
    ledger = Ledger()
    token = LEDGER.set(ledger)
    yield ledger
    LEDGER.reset(token)


LARGE = (1024, 1024)
N_BYTES = 4 * 1024 * 1024


def test_memory_counts_as_long_as_a_view_lives(ledger):
    x = unfilled(LARGE, "float32")
    view = x.reshape(-1)[10:20]
    del x
    assert ledger.n_bytes == N_BYTES
    del view
    assert ledger.n_bytes == 0


def test_a_view_takes_no_memory(ledger):
    x = unfilled(LARGE, "float32")
    views = x.T, x[1:], x.reshape(-1), np.broadcast_to(x, (3, *LARGE))
    assert len(views) == 4
    assert ledger.peak == N_BYTES


def test_a_transposed_array_is_copied_to_be_flat(ledger):
    x = unfilled(LARGE, "float32")
    flat = x.T.reshape(-1)
    assert flat.shape == (1024 * 1024,)
    assert ledger.n_bytes == 2 * N_BYTES


def test_an_output_that_is_given_takes_no_memory(ledger):
    x = unfilled(LARGE, "float32")
    x *= 2.0
    np.add(x, x, out=x)
    x[...] = 1.0
    assert ledger.peak == N_BYTES


ELIDED: dict[str, Callable[[Any], Any]] = {
    "a product in a sum": lambda x: x * x + x,
    "a product on the right": lambda x: x + x * x,
    "a number on the left": lambda x: 2.0 * (x + x),
    "a difference on the right": lambda x: x - (x + x),
    "a chain": lambda x: -(x * x) / x + x,
    "a square": lambda x: (x + x) ** 2,
    "a negative": lambda x: -(x * 2.0),
    "a wider number": lambda x: (x > 0.0) * x,
}


@pytest.mark.parametrize("expression", ELIDED.values(), ids=ELIDED.keys())
def test_temporaries_take_what_numpys_take(expression, ledger, traced_peak):
    x = np.ones(LARGE, "float32")
    expected = traced_peak(lambda: expression(x))
    x = unfilled(LARGE, "float32")
    before = ledger.n_bytes
    expression(x)
    assert ledger.peak - before == pytest.approx(expected, rel=0.01)


@pytest.fixture
def traced_peak():
    """Return a function that measures the most memory that NumPy takes in a call."""
    import tracemalloc

    def peak_of(call: Callable[[], Any]) -> int:
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            call()
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()

    return peak_of


def test_nothing_is_written_to_an_array_without_numbers():
    x = unfilled((8,), "float32")
    x += 1.0
    x[2] = 5.0
    assert float(x[2]) == 0.0
