"""Gradients are found by the names that people give them."""

import numpy as np
import pytest

from npformer.proof.foreign.gradient_names import looks_trained, match_gradients

W = np.ones((4, 3))
B = np.ones(3)


@pytest.mark.parametrize(
    ("parameter", "gradient"),
    [
        ("W", "dW"),
        ("W", "dw"),
        ("W", "d_W"),
        ("W", "grad_W"),
        ("W", "W_grad"),
        ("W", "gradW"),
        ("W", "dL_dW"),
        ("W", "delta_W"),
        ("W", "W_gradient"),
        ("W", "nabla_W"),
        ("weight", "grad_weight"),
        ("weights", "dweights"),
        ("weights", "dW"),
        ("weight", "dW"),
        ("kernel", "dW"),
        ("bias", "db"),
        ("W.data", "W.grad"),
        ("W.value", "W.grad"),
        ("params['W1']", "grads['W1']"),
        ("params['W1']", "grads['dW1']"),
        ("params[0]", "grads[0]"),
        ("weights[0]", "grad_weights[0]"),
        ("W[1]", "dW[1]"),
        ("biases[0]", "nabla_b[0]"),
        ("heads['W']", "grad_heads['W']"),
        ("W1", "grads['W1']"),
        ("layers[0].W", "layers[0].dW"),
        ("params['W1']", "return['W1']"),
        ("x", "dinputs"),
        ("inputs", "dx"),
    ],
)
def test_a_name_and_that_of_its_gradient_are_matched(parameter, gradient):
    assert match_gradients({parameter: W}, {gradient: W}) == {parameter: gradient}


@pytest.mark.parametrize(
    ("parameter", "other"),
    [
        ("W", "db"),
        ("W1", "dW2"),
        ("params['b1']", "grads['bias1']"),
        ("params['W']", "grads['V']"),
        ("params[0]", "grads[1]"),
        ("weights[0]", "grad_weights[1]"),
        ("weights[0]", "grad_biases[0]"),
        ("gamma", "dbeta"),
        ("W", "mask"),
        ("W.data", "b.grad"),
    ],
)
def test_other_names_are_not_matched(parameter, other):
    assert match_gradients({parameter: W}, {other: W}) == {}


def test_the_same_layer_comes_before_another_one():
    parameters = {"layers[0].W": W, "layers[1].W": W}
    gradients = {"layers[1].dW": W, "layers[0].dW": W}
    assert match_gradients(parameters, gradients) == {
        "layers[0].W": "layers[0].dW",
        "layers[1].W": "layers[1].dW",
    }


def test_the_very_name_comes_before_a_synonym():
    assert match_gradients({"b": B}, {"dbias": B, "db": B}) == {"b": "db"}


def test_a_gradient_of_another_shape_is_matched_by_the_very_name_alone():
    assert match_gradients({"W": W}, {"dW": W.T}) == {"W": "dW"}
    assert match_gradients({"weight": W}, {"dW": W.T}) == {}


@pytest.mark.parametrize(
    ("path", "trained"),
    [
        ("W", True),
        ("W_q", True),
        ("b1", True),
        ("layers[0].weight", True),
        ("params['gamma']", True),
        ("bias.data", True),
        ("wte", True),
        ("pe", False),
        ("running_mean", False),
        ("mask", False),
        ("cache[0]", False),
    ],
)
def test_the_name_of_a_trained_parameter_is_told_from_a_constant(path, trained):
    assert looks_trained(path) == trained
