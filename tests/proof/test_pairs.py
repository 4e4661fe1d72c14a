"""What functions a pair may consist of, and what they may take and return."""

import random

import numpy as np
import pytest

from npformer.core import Layer
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError


def multiply_alone(x, W):
    return x @ W


@pytest.mark.parametrize(
    "backward",
    [
        lambda dy, x, W: (dy @ W.T, x.T @ dy),
        lambda dy, W, x: (dy @ W.T, x.T @ dy),
        lambda dout, a, b: (dout @ b.T, a.T @ dout),
        lambda dout, *arrays: (dout @ arrays[1].T, arrays[0].T @ dout),
        lambda dy, x, W: [dy @ W.T, x.T @ dy],
        lambda dy, x, W: {"dx": dy @ W.T, "dW": x.T @ dy},
        lambda dy, x, W: {"W": x.T @ dy, "x": dy @ W.T},
    ],
    ids=["names", "other order", "other names", "args", "list", "dictionary", "bare names"],
)
def test_a_forward_pass_may_return_its_output_alone(rng, backward):
    x, W = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
    assert gradcheck((multiply_alone, backward), x, W).passed


def test_a_backward_pass_without_a_cache_may_take_the_output(rng):
    pair = (lambda x: np.tanh(x)), (lambda dy, y: dy * (1.0 - y * y))
    assert gradcheck(pair, rng.normal(size=(3, 4))).passed


def test_a_ufunc_may_be_a_forward_pass(rng):
    pair = np.tanh, lambda dy, x: dy / np.cosh(x) ** 2
    assert gradcheck(pair, rng.normal(size=(3, 4))).passed


def test_a_wrong_backward_pass_of_a_ufunc_is_found(rng):
    pair = np.tanh, lambda dy, x: dy / np.cosh(x)
    with pytest.raises(GradcheckError):
        gradcheck(pair, rng.normal(size=(3, 4)))


def positional_only(x, W, /):
    return x @ W, (x, W)


def variable(*arrays):
    x, W = arrays
    return x @ W, arrays


def by_keyword(x, **weights):
    return x @ weights["W"], (x, weights["W"])


def matrices_backward(dy, cache):
    x, W = cache
    return dy @ W.T, x.T @ dy


@pytest.mark.parametrize(
    ("forward", "names"),
    [
        (positional_only, ["x", "W"]),
        (variable, ["arrays[0]", "arrays[1]"]),
    ],
)
def test_arguments_may_be_positional(rng, forward, names):
    x, W = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
    report = gradcheck((forward, matrices_backward), x, W)
    assert [tensor.name for tensor in report.tensors] == names


def test_arguments_may_be_keywords_without_a_name_in_the_signature(rng):
    x, W = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
    report = gradcheck((by_keyword, matrices_backward), x, W=W)
    assert [tensor.name for tensor in report.tensors] == ["x", "W"]


@pytest.mark.parametrize(
    "generator", [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)]
)
def test_each_call_gets_a_fresh_copy_of_a_generator(rng, generator):
    def forward(x, generator):
        scale = (
            generator.normal(size=x.shape) if hasattr(generator, "normal") else generator.random()
        )
        return x * scale, scale

    assert gradcheck((forward, np.multiply), rng.normal(size=(3, 4)), generator).passed


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x, W: x, r"returned .*; expected \(dx, dW\), in this order"),
        (lambda x, W: [x], r"returned a list of 1; expected \(dx, dW\), in this order"),
        (lambda x, W: {"dx": x}, r"returned a dictionary with 'dx'; expected 'dW', too"),
    ],
)
def test_what_a_backward_pass_returned_is_named(rng, returned, message):
    pair = multiply_alone, lambda dy, x, W: returned(x, W)
    with pytest.raises(TypeError, match=message):
        gradcheck(pair, rng.normal(size=(5, 4)), rng.normal(size=(4, 3)))


def test_arguments_that_cannot_be_told_are_asked_for(rng):
    pair = multiply_alone, lambda dy, x, W, z: None
    with pytest.raises(TypeError, match="takes z, and the forward pass returned no cache; expecte"):
        gradcheck(pair, rng.normal(size=(5, 4)), rng.normal(size=(4, 3)))


class WithoutACache(Layer):
    def forward(self, x, context):
        return 2.0 * x


def test_a_layer_that_returns_its_output_alone_is_told_what_to_return(rng):
    message = r"WithoutACache returned .*; expected \(y, cache\)"
    with pytest.raises(TypeError, match=message):
        gradcheck(WithoutACache(), rng.normal(size=(3, 4)))


def test_a_list_for_an_array_gets_the_advice_for_lists():
    pair = (lambda x: (2.0 * np.asarray(x), None)), (lambda dy, _: 2.0 * dy)
    with pytest.raises(
        TypeError, match=r"A list is not an array: write np\.array\(x, dtype='float64'"
    ):
        gradcheck(pair, [1.0, 2.0])


def lstm_like(x, W):
    hidden = np.tanh(x @ W)
    return hidden, 2.0 * hidden, (x, W, hidden)


def lstm_like_backward(factor):
    def backward(dhidden, dcell, cache):
        x, W, hidden = cache
        dscores = (dhidden + factor * dcell) * (1.0 - hidden**2)
        return dscores @ W.T, x.T @ dscores

    return backward


def test_several_outputs_may_stand_before_the_cache(rng):
    x, W = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
    assert gradcheck((lstm_like, lstm_like_backward(2.0)), x, W).passed


def test_a_wrong_gradient_of_the_second_output_is_found(rng):
    x, W = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
    with pytest.raises(GradcheckError):
        gradcheck((lstm_like, lstm_like_backward(1.0)), x, W)


def test_a_forward_pass_that_returns_too_much_is_told_so(rng):
    pair = (lambda x: (x, x, x)), (lambda dy, cache: dy)
    with pytest.raises(TypeError, match=r"returned a tuple of 3; expected \(y, cache\)"):
        gradcheck(pair, rng.normal(size=3))
