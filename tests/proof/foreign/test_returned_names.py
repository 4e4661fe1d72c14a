"""A function that returns (loss, gradients ...) is read by the names in its return statement."""

import numpy as np
import pytest

from npformer.proof.foreign.returned_names import names_of_gradients
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError

RNG = np.random.default_rng(0)
Wxh = RNG.normal(size=(3, 4))
Whh = RNG.normal(size=(3, 3))
bh = RNG.normal(size=(3, 1))
constant = RNG.normal(size=(3, 1))
INPUTS = [RNG.normal(size=(4, 1)) for _ in range(3)]
STATE = RNG.normal(size=(3, 1))


def run_recurrent(Wxh, Whh, bh, inputs, hprev, factor):
    """Return the loss, the gradients of Wxh, Whh and bh, and the last state, backwards in time."""
    hs = [hprev]
    for x in inputs:
        hs.append(np.tanh(Wxh @ x + Whh @ hs[-1] + bh + constant))
    dWxh, dWhh, dbh = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(bh)
    dh = np.zeros_like(hprev)
    for t in reversed(range(len(inputs))):
        dz = (1.0 - hs[t + 1] ** 2) * (dh + hs[t + 1])
        dWxh += dz @ inputs[t].T
        dWhh += dz @ hs[t].T
        dbh += dz
        dh = factor * Whh.T @ dz
    return 0.5 * sum(np.sum(h**2) for h in hs[1:]), dWxh, dWhh, dbh, hs


def loss_of_globals(inputs, hprev):
    loss, dWxh, dWhh, dbh, hs = run_recurrent(Wxh, Whh, bh, inputs, hprev, factor=1.0)
    return loss, dbh, dWhh, dWxh, hs[-1]


def loss_of_globals_without_past(inputs, hprev):
    loss, dWxh, dWhh, dbh, hs = run_recurrent(Wxh, Whh, bh, inputs, hprev, factor=0.0)
    return loss, dbh, dWhh, dWxh, hs[-1]


def loss_of_arguments(inputs, hprev, Wxh, Whh, bh):
    loss, dWxh, dWhh, dbh, hs = run_recurrent(Wxh, Whh, bh, inputs, hprev, factor=1.0)
    hprev = hs[-1]
    return loss, dWxh, dWhh, dbh, hprev


def test_global_arrays_whose_gradients_are_returned_are_checked():
    report = gradcheck(loss_of_globals, INPUTS, STATE)
    assert {tensor.name for tensor in report.tensors} == {"Wxh", "Whh", "bh"}


def test_a_state_that_is_returned_is_no_gradient():
    report = gradcheck(loss_of_arguments, INPUTS, STATE, Wxh, Whh, bh)
    assert {tensor.name for tensor in report.tensors} == {"Wxh", "Whh", "bh"}


def test_a_wrong_gradient_of_a_global_array_is_found():
    with pytest.raises(GradcheckError, match=r"Whh .*<-- wrong"):
        gradcheck(loss_of_globals_without_past, INPUTS, STATE)


def test_global_arrays_are_left_as_they_were():
    original = Wxh
    copy = Wxh.copy()
    gradcheck(loss_of_globals, INPUTS, STATE)
    assert Wxh is original
    np.testing.assert_array_equal(Wxh, copy)


def cost(w, b, x, y):
    error = x @ w + b - y
    return 0.5 * np.mean(error**2), x.T @ error / len(y), np.mean(error)


def cost_with_named_gradients(w, b, x, y):
    error = x @ w + b - y
    dw = x.T @ error / len(y)
    db = np.mean(error)
    return 0.5 * np.mean(error**2), dw, db


def cost_with_a_sum(w, b, x, y):
    error = x @ w + b - y
    dw = x.T @ error / len(y)
    db = np.sum(error)
    return 0.5 * np.mean(error**2), (dw, db)


def cost_after_a_dictionary(w, b, x, y):
    loss, dw, db = cost_with_named_gradients(w, b, x, y)
    return {"dw": dw, "db": db}, loss


def cost_beside_a_wrong_number(w, b, x, y):
    grads, loss = cost_after_a_dictionary(w, b, x, y)
    grads["db"] = 2.0 * grads["db"]
    return loss, grads


REGRESSION = [RNG.normal(size=4), 0.5, RNG.normal(size=(5, 4)), RNG.normal(size=5)]


def test_a_number_with_a_named_gradient_is_checked():
    report = gradcheck(cost_with_named_gradients, *REGRESSION)
    assert [tensor.name for tensor in report.tensors] == ["w", "b"]


def test_a_wrong_gradient_of_a_number_is_found():
    with pytest.raises(GradcheckError, match=r"\bb .*<-- wrong"):
        gradcheck(cost_with_a_sum, *REGRESSION)


def test_a_number_in_a_dictionary_before_the_loss_is_checked():
    report = gradcheck(cost_after_a_dictionary, *REGRESSION)
    assert [tensor.name for tensor in report.tensors] == ["w", "b"]


def test_a_wrong_number_in_a_dictionary_is_found():
    with pytest.raises(GradcheckError, match=r"\bb .*<-- wrong"):
        gradcheck(cost_beside_a_wrong_number, *REGRESSION)


def loss_of_data(data, theta):
    grad = data.T @ (data @ theta)
    return 0.5 * np.sum((data @ theta) ** 2), grad


def test_a_name_for_any_gradient_belongs_to_no_array():
    assert gradcheck(loss_of_data, REGRESSION[2], REGRESSION[0]).passed


def test_gradients_without_names_are_taken_in_order():
    report = gradcheck(cost, *REGRESSION)
    assert "w" in [tensor.name for tensor in report.tensors]


def swapped(A, B):
    dA, dB = A * np.sum(B), B * np.sum(A)
    return 1.0, dB, dA


def one_gradient(W):
    dW = W
    return 1.0, dW


def differing(W):
    if W.any():
        return 1.0, W
    dW = W
    return 0.0, dW


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (swapped, {"return[0]": "dB", "return[1]": "dA"}),
        (one_gradient, {"return": "dW"}),
        (cost_with_a_sum, {"return[0]": "dw", "return[1]": "db"}),
        (loss_of_globals, {"return[0]": "dbh", "return[1]": "dWhh", "return[2]": "dWxh"}),
        (differing, {}),
        (np.sin, {}),
    ],
)
def test_names_are_read_in_the_return_statement(function, names):
    assert names_of_gradients(function) == names
