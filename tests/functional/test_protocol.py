"""What every pair keeps to, whatever it computes."""

import copy

import numpy as np
import pytest

from npformer import functional as F
from tests.pairs import MASKED, NAMES, PLAIN, differentiable, gradients_of, pairs, run

pytestmark = pytest.mark.parametrize("example", [PLAIN, MASKED], ids=["plain", "masked"])
EACH_PAIR = pytest.mark.parametrize("name", NAMES)


def test_every_pair_has_a_row(example):
    assert sorted(pairs(example, "float64")) == NAMES


@EACH_PAIR
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_come_in_order_shape_and_dtype_of_the_arguments(name, example, dtype):
    inputs, _ = pairs(example, dtype)[name]
    y, cache = run(name, example, dtype)
    gradients = gradients_of(name, np.ones_like(y), cache)
    assert [g.shape for g in gradients] == [x.shape for x in differentiable(inputs)]
    assert {a.dtype.name for a in (y, *gradients)} == {dtype}


@EACH_PAIR
def test_nothing_that_goes_in_is_changed(name, example):
    inputs, options = pairs(example, "float64")[name]
    arrays = [a for a in (*inputs, *options.values()) if isinstance(a, np.ndarray)]
    before = copy.deepcopy(arrays)
    y, cache = getattr(F, name)(*inputs, **options)
    gradients_of(name, np.ones_like(y), cache)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@EACH_PAIR
def test_a_later_call_overwrites_no_earlier_result(name, example):
    y, cache = run(name, example)
    gradients = gradients_of(name, np.ones_like(y), cache)
    kept = copy.deepcopy((y, *gradients))

    other, other_cache = run(name, example)
    gradients_of(name, np.full_like(other, 3.0), other_cache)

    for array, before in zip((y, *gradients), kept, strict=True):
        np.testing.assert_array_equal(array, before)


@EACH_PAIR
def test_a_backward_pass_is_linear_in_dy(name, example, rng):
    y, cache = run(name, example)
    a, b = rng.normal(size=y.shape), rng.normal(size=y.shape)
    of_a, of_b, of_both = (gradients_of(name, dy, cache) for dy in (a, b, a + 2.0 * b))
    for one, other, both in zip(of_a, of_b, of_both, strict=True):
        np.testing.assert_allclose(both, one + 2.0 * other, rtol=0, atol=1e-12)


LINEAR_IN = {
    "linear": [(1, 2)],
    "conv1d": [(1, 2)],
    "causal_convolution": [(0,), (1,)],
    "short_convolution": [(0,), (1,)],
    "state_space_kernel": [(3,)],
    "layer_norm": [(1, 2)],
    "attention_scores": [(0,), (1,)],
    "average": [(1,)],
    "scaled_dot_product_attention": [(2,)],
    "blockwise_attention": [(2,)],
    "dense_scores": [(3, 4)],
    "dense_synthesizer": [(1,)],
    "factorized_dense_scores": [(3, 4), (7, 8)],
    "factorized_dense_synthesizer": [(1,)],
    "random_scores": [(0,)],
    "random_synthesizer": [(0,)],
    "factorized_random_scores": [(0,), (1,)],
    "factorized_random_synthesizer": [(0,)],
    "mixture_scores": [(1, 2)],
    "fourier_mixing": [(0,)],
    "hartley_mixing": [(0,)],
    "linear_mixing": [(0,), (1,), (2,)],
    "dropout": [(0,)],
    "token_dropout": [(0,)],
    "embedding": [(0,)],
    "mean_pooling": [(0,)],
}
"""In which of its arrays of floats, or in which of them together, a pair is linear."""


@pytest.mark.parametrize(
    ("name", "together"), [(name, group) for name in LINEAR_IN for group in LINEAR_IN[name]]
)
def test_the_backward_pass_of_a_linear_map_is_its_transpose(name, together, example, rng):
    inputs, _ = pairs(example, "float64")[name]
    x = differentiable(inputs)
    y, cache = run(name, example)
    dy = rng.normal(size=y.shape)
    dx = gradients_of(name, dy, cache)
    # <y, dy> = <x, dx>, and for two that are added the sum of both products
    products = sum((x[i] * dx[i]).sum() for i in together)
    np.testing.assert_allclose(products, (y * dy).sum(), rtol=1e-10)
