"""What every pair keeps to, whatever it computes."""

import copy

import numpy as np
import pytest

from npformer import functional as F

MASK = np.array([[True, True, False], [False, False, False]])


def pairs(dtype):
    """Return {name of a forward function: (inputs, options)}; every pair has a row."""
    rng = np.random.default_rng(0)

    def draw(*shape):
        return rng.normal(size=shape).astype(dtype)

    x = draw(2, 3, 4)
    maps = draw(4, 6), draw(6), draw(6, 5), draw(5)
    more_maps = draw(4, 6), draw(6), draw(6, 2), draw(2)
    scores, value = draw(2, 3, 3), draw(2, 3, 2)
    return {
        "linear": ((x, draw(4, 5), draw(5)), {}),
        "conv1d": ((x, draw(3, 4, 5), draw(5)), {}),
        "relu": ((x,), {}),
        "gelu": ((x,), {}),
        "tanh": ((x,), {}),
        "sigmoid": ((x,), {}),
        "layer_norm": ((x, draw(4), draw(4)), {}),
        "softmax": ((x,), {"mask": MASK[..., None]}),
        "attention_scores": ((x, draw(2, 5, 4)), {}),
        "average": ((scores, value), {"mask": MASK[:, None]}),
        "scaled_dot_product_attention": ((x, draw(2, 3, 4), value), {"causal": True}),
        "blockwise_attention": (
            (x, draw(2, 3, 4), value),
            {"causal": True, "mask": MASK[:, None], "block": 2},
        ),
        "dense_scores": ((x, *maps), {"columns": 3}),
        "dense_synthesizer": ((x, value, *maps), {"causal": True}),
        "factorized_dense_scores": ((x, *maps, *more_maps), {"columns": 7}),
        "factorized_dense_synthesizer": (
            (x, value, *maps, *more_maps),
            {"mask": MASK[:, None], "causal": True},
        ),
        "random_scores": ((draw(2, 5, 5),), {"length": 3}),
        "random_synthesizer": ((value, draw(5, 5)), {"mask": MASK[:, None]}),
        "factorized_random_scores": ((draw(2, 5, 1), draw(2, 5, 1)), {"length": 3}),
        "factorized_random_synthesizer": ((value, draw(5, 2), draw(5, 2)), {"causal": True}),
        "mixture_scores": ((draw(2), scores, draw(3, 3)), {}),
        "fourier_mixing": ((x,), {}),
        "hartley_mixing": ((x,), {}),
        "linear_mixing": ((x, draw(5, 5), draw(4, 4)), {}),
        "dropout": ((x, 0.5, np.random.default_rng(1)), {}),
        "embedding": ((np.array([1, 2, 1]), draw(4, 3)), {}),
        "mean_pooling": ((x,), {"mask": MASK}),
        "softmax_cross_entropy": ((draw(3, 4), np.array([0, 3, -1])), {"label_smoothing": 0.1}),
        "binary_cross_entropy_with_logits": ((draw(5), np.ones(5, dtype=dtype)), {}),
        "mean_squared_error": ((draw(5), draw(5)), {}),
    }


NAMES = sorted(name.removesuffix("_backward") for name in F.__all__ if name.endswith("_backward"))


def as_tuple(gradients):
    return gradients if isinstance(gradients, tuple) else (gradients,)


def test_every_pair_has_a_row():
    assert sorted(pairs("float64")) == NAMES


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_the_dtype_that_goes_in_comes_out(name, dtype):
    inputs, options = pairs(dtype)[name]
    y, cache = getattr(F, name)(*inputs, **options)
    assert y.dtype == dtype
    gradients = as_tuple(getattr(F, f"{name}_backward")(np.ones_like(y), cache))
    assert {g.dtype.name for g in gradients} == {dtype}


@pytest.mark.parametrize("name", NAMES)
def test_gradients_come_in_the_order_and_the_shapes_of_the_arguments(name):
    inputs, options = pairs("float64")[name]
    y, cache = getattr(F, name)(*inputs, **options)
    gradients = as_tuple(getattr(F, f"{name}_backward")(np.ones_like(y), cache))
    floats = [a for a in inputs if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    if name in ("binary_cross_entropy_with_logits", "mean_squared_error"):
        floats = floats[:1]  # targets have no gradient
    assert [g.shape for g in gradients] == [a.shape for a in floats]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_goes_in_is_changed(name):
    inputs, options = pairs("float64")[name]
    arrays = [a for a in (*inputs, *options.values()) if isinstance(a, np.ndarray)]
    before = copy.deepcopy(arrays)
    y, cache = getattr(F, name)(*inputs, **options)
    getattr(F, f"{name}_backward")(np.ones_like(y), cache)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("name", NAMES)
def test_a_later_call_overwrites_no_earlier_result(name):
    inputs, options = pairs("float64")[name]
    y, cache = getattr(F, name)(*inputs, **options)
    gradients = as_tuple(getattr(F, f"{name}_backward")(np.ones_like(y), cache))
    kept = copy.deepcopy((y, gradients))

    other, other_cache = getattr(F, name)(*copy.deepcopy(inputs), **options)
    getattr(F, f"{name}_backward")(np.full_like(other, 3.0), other_cache)

    np.testing.assert_array_equal(y, kept[0])
    for gradient, before in zip(gradients, kept[1], strict=True):
        np.testing.assert_array_equal(gradient, before)


@pytest.mark.parametrize("name", NAMES)
def test_a_backward_pass_is_linear_in_dy(name):
    inputs, options = pairs("float64")[name]
    y, cache = getattr(F, name)(*inputs, **options)
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=y.shape), rng.normal(size=y.shape)
    backward = getattr(F, f"{name}_backward")
    separate = zip(as_tuple(backward(a, cache)), as_tuple(backward(b, cache)), strict=True)
    for both, (of_a, of_b) in zip(as_tuple(backward(a + 2.0 * b, cache)), separate, strict=True):
        np.testing.assert_allclose(both, of_a + 2.0 * of_b, rtol=0, atol=1e-12)
