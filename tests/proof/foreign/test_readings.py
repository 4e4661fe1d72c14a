"""What a backward pass takes besides dy: the arguments of the forward pass, or its output."""

import numpy as np
import pytest

from npformer.proof.foreign.readings import method_names
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError
from tests.proof.foreign import losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))
LABELS = np.array([0, 1, 2, 0, 3])
TARGETS = RNG.normal(size=(5, 4))


@pytest.mark.parametrize("kind", losses.LOSSES)
def test_a_right_loss_passes_whatever_its_backward_pass_takes(kind):
    assert gradcheck(kind(), X, TARGETS).passed


@pytest.mark.parametrize("kind", losses.LOSSES)
def test_a_wrong_loss_is_found_whatever_its_backward_pass_takes(kind):
    with pytest.raises(GradcheckError, match="the derivative is WRONG"):
        gradcheck(kind(divisor="samples"), X, TARGETS)


def test_a_right_loss_of_logits_is_given_its_probabilities():
    report = gradcheck(losses.SoftmaxWithLoss(), X, LABELS)
    assert "backward was given the output that forward has kept" in report.notes


def test_a_wrong_loss_of_logits_is_found():
    with pytest.raises(GradcheckError, match="the derivative is WRONG"):
        gradcheck(losses.SoftmaxWithLoss(divisor="samples"), X, LABELS)


def mse(y_true, y_pred):
    return np.mean((y_true - y_pred) ** 2)


def mse_prime(y_true, y_pred):
    return 2.0 * (y_pred - y_true) / y_true.size


def mse_prime_of_other_sign(y_true, y_pred):
    return -mse_prime(y_true, y_pred)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def sigmoid_derivative(x):
    return sigmoid(x) * (1.0 - sigmoid(x))


def sigmoid_derivative_of_output(s):
    return s * (1.0 - s)


def sigmoid_derivative_of_wrong_argument(x):
    return x * (1.0 - x)


def relu(x):
    return np.maximum(x, 0.0)


def relu_grad(z):
    return z > 0.0


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        (mse, [TARGETS, X]),
        ((mse, mse_prime), [TARGETS, X]),
        (sigmoid, [X]),
        ((sigmoid, sigmoid_derivative), [X]),
        (relu, [X]),
    ],
)
def test_a_function_and_its_derivative_pass(target, inputs):
    assert gradcheck(target, *inputs).passed


@pytest.mark.parametrize(
    ("pair", "inputs"),
    [
        ((mse, mse_prime_of_other_sign), [TARGETS, X]),
        ((sigmoid, sigmoid_derivative_of_wrong_argument), [X]),
        ((sigmoid, relu_grad), [X]),
    ],
)
def test_a_wrong_derivative_function_is_found(pair, inputs):
    with pytest.raises(GradcheckError, match="the derivative is WRONG"):
        gradcheck(pair, *inputs)


def test_a_derivative_by_the_output_passes_with_a_note():
    report = gradcheck((sigmoid, sigmoid_derivative_of_output), X)
    assert any("was given the output of the function" in note for note in report.notes)


def test_a_derivative_of_its_own_arguments_does_not_keep_its_input():
    assert not gradcheck(sigmoid, X).protocol


def test_the_target_of_a_loss_needs_no_gradient():
    assert not gradcheck(mse, TARGETS, X).notes


class Mask:
    """A layer whose backward pass takes dy and an argument of the forward pass."""

    def forward(self, x, mask):
        return x * mask

    def backward(self, dy, mask):
        return dy * mask


def test_an_argument_that_is_no_target_leaves_dy_in_its_place():
    assert gradcheck(Mask(), X, np.abs(X) > 0.5).passed


class Layer:
    """A layer with a loss beside its passes."""

    def forward(self, x):
        return x * x

    def backward(self, dy):
        return dy

    def loss(self, x, t):
        return np.sum((x - t) ** 2)


def test_a_forward_pass_comes_before_a_loss_without_its_gradient():
    assert method_names(Layer()) == ("forward", "backward")
