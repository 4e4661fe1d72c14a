"""Sums and products keep their digits, whatever the strides of an array.

Of 2^24 + 2^10 ones in float32, a sum that adds one number after the other is 2^24.
"""

import numpy as np
import pytest

from npformer import functional as F
from npformer.engine import EngineContext
from npformer.engine.cpu.linear import linear, linear_backward
from npformer.functional.sums import BLOCK, lay_out, mean_along, sum_along

STUCK = 1 << 24
"""float32 holds no odd number above it: adding 1 to it changes nothing."""

ROWS = STUCK + BLOCK

MANY = 100_001
"""Rows of which a sum, one by one, loses 3 digits in float32."""

VIEWS = {
    "plain": lambda n: np.ones((n, 1), "float32"),
    "reversed": lambda n: np.ones((n, 1), "float32")[::-1],
    "repeated": lambda n: np.broadcast_to(np.float32(1.0), (n, 1)),
    "cut out": lambda n: np.ones((n, 2), "float32")[:, :1],
}
"""Ways in which ones may lie in memory."""

of_every_view = pytest.mark.parametrize("view", VIEWS)


@of_every_view
def test_the_gradients_of_a_linear_map_keep_their_digits(view):
    rows = VIEWS[view](MANY)
    _, cache = F.linear(rows, np.ones((1, 1), "float32"), np.ones(1, "float32"))
    _, dW, db = F.linear_backward(np.broadcast_to(np.float32(0.1), rows.shape), cache)
    assert (dW.item(), db.item()) == pytest.approx((0.1 * MANY, 0.1 * MANY), rel=1e-5)


@of_every_view
def test_the_engines_gradients_of_a_linear_map_keep_their_digits(view):
    rows = VIEWS[view](MANY)
    W, b = np.ones((1, 1), "float32"), np.ones(1, "float32")
    _, cache = linear(rows, W, b, context=EngineContext(training=True))
    _, dW, db = linear_backward(np.broadcast_to(np.float32(0.1), rows.shape), cache)
    assert (dW.item(), db.item()) == pytest.approx((0.1 * MANY, 0.1 * MANY), rel=1e-5)


@pytest.mark.slow
@of_every_view
def test_the_gradient_of_a_wider_bias_counts_every_row(view):
    rows = np.broadcast_to(VIEWS[view](ROWS), (ROWS, 2))
    _, cache = F.linear(rows, np.ones((2, 2), "float32"), np.ones(2, "float32"))
    assert F.linear_backward(rows, cache)[2].tolist() == [ROWS, ROWS]


@of_every_view
def test_attention_to_a_view_is_attention_to_its_copy(view):
    query, key = np.zeros((1, 1), "float32"), np.ones((MANY, 1), "float32")
    values = 0.1 * VIEWS[view](MANY)
    of_view, _ = F.scaled_dot_product_attention(query, key, values[::-1])
    of_copy, _ = F.scaled_dot_product_attention(query, key, values[::-1].copy())
    assert of_view == of_copy


@pytest.mark.slow
@of_every_view
def test_the_mean_of_tokens_counts_each(view):
    tokens = np.broadcast_to(VIEWS[view](ROWS), (ROWS, 2))[None]
    assert F.mean_pooling(tokens)[0].tolist() == [[1.0, 1.0]]


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_a_softmax_sums_to_1_along_both_axes_of_a_transposed_view(axis):
    shape = (ROWS, 2) if axis == 0 else (2, ROWS)
    scores = np.zeros(shape[::-1], "float32").T
    y, _ = F.softmax(scores, axis=axis)
    assert y.flat[0] * ROWS == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 3000), 0), ((3000, 2), 0), ((2, 3000, 3), 1), ((1025, 1, 2), 0), ((4, 0), 1)],
)
def test_a_sum_in_blocks_is_the_sum(rng, shape, axis):
    x = rng.normal(size=shape)
    np.testing.assert_allclose(sum_along(x, axis), x.sum(axis=axis), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_sum_keeps_its_axis_if_asked(n):
    assert sum_along(np.ones((n, 2)), axis=0, keepdims=True).tolist() == [[n, n]]


def test_rows_of_a_transposed_view_are_summed_as_those_of_its_copy(rng):
    x = rng.normal(size=(1000, 50)).astype("float32").T
    assert np.array_equal(mean_along(x, axis=-1), mean_along(x.copy(), axis=-1))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "softmax"])
def test_a_transposed_view_gives_the_numbers_of_its_copy(rng, name):
    x = rng.normal(size=(1000, 50)).astype("float32").T
    gamma, beta = np.ones(1000, "float32"), np.zeros(1000, "float32")
    parameters = {"layer_norm": (gamma, beta), "rms_norm": (gamma,), "softmax": ()}[name]
    of_view, _ = getattr(F, name)(x, *parameters)
    of_copy, _ = getattr(F, name)(x.copy(), *parameters)
    assert np.array_equal(of_view, of_copy)


@pytest.mark.parametrize(
    "view",
    [lambda x: x, lambda x: x.T, lambda x: x[1:, 2:], lambda x: x[::2], lambda x: x[:, :1]],
    ids=["plain", "transposed", "cut out", "every second row", "a column"],
)
def test_what_a_blas_takes_is_not_copied(view):
    x = view(np.ones((6, 5)))
    assert lay_out(x) is x


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x[:, ::2],
        lambda x: np.broadcast_to(x[0], x.shape),
        lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 3),
    ],
    ids=["reversed rows", "reversed columns", "every second column", "repeated", "windows"],
)
def test_what_no_blas_takes_is_copied(view):
    x = view(np.arange(30.0).reshape(6, 5))
    assert lay_out(x).flags.c_contiguous
    assert np.array_equal(lay_out(x), x)


def test_a_sum_across_rows_keeps_its_digits():
    sums = sum_along(np.full((MANY, 2), np.float32(0.1)), axis=0)
    np.testing.assert_allclose(sums, 0.1 * MANY, rtol=1e-5)
