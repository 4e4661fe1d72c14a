"""Invariants of losses, tables, optimizers and tests: see `npformer.learn.museum.invariants`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from npformer import functional as F
from npformer.core import Array, Layer
from npformer.learn.museum.attention_by import Pair
from npformer.learn.museum.losses import EQUAL_LOGITS, LABELS, LOGITS, SURE_OF_A_MISTAKE
from npformer.learn.museum.tables import IDS
from npformer.optim import Adam
from npformer.proof.cases.case import draw
from npformer.proof.gradcheck import gradcheck

TARGET = np.eye(LOGITS.shape[-1])[LABELS]
"""1 at the right class of each token, else 0."""

ALL_MISTAKEN = 40.0 * np.roll(TARGET, 1, axis=-1)
"""Logits by which every token is sure of a wrong class."""

# Losses -------------------------------------------------------------------------------------------


def gradient_of_cross_entropy(pair: Pair) -> None:
    """Cross entropy's backward pass is its derivative, for equal logits and for sure mistakes too.

    The loss takes logits, (batch, length, n_classes), and labels, (batch, length).
    """
    for logits in (LOGITS, EQUAL_LOGITS, SURE_OF_A_MISTAKE):
        gradcheck(pair, logits, LABELS)


def a_gradient_is_p_minus_target(pair: Pair) -> None:
    """The gradient of a mean of n cross entropies is (p - target) / n, p the softmax of logits."""
    cross_entropy, backward = pair
    for logits in (LOGITS, EQUAL_LOGITS, np.zeros_like(LOGITS)):
        _, cache = cross_entropy(logits, LABELS)
        expected = (scipy.special.softmax(logits, axis=-1) - TARGET) / LABELS.size
        np.testing.assert_allclose(backward(1.0, cache), expected, rtol=0, atol=1e-12)


def a_loss_and_its_gradient_share_a_count(pair: Pair) -> None:
    """Where every token is sure and wrong, the loss falls by what the gradients say together.

    One more unit for the logit of every right class lowers each token's loss by 1, and the gradient
    of each of these logits is -1: over whatever count both are averaged, the sums agree.
    """
    cross_entropy, backward = pair
    loss, cache = cross_entropy(ALL_MISTAKEN, LABELS)
    lower_loss, _ = cross_entropy(ALL_MISTAKEN + TARGET, LABELS)
    expected = -(backward(1.0, cache) * TARGET).sum()
    np.testing.assert_allclose(loss - lower_loss, expected, rtol=1e-9)


def a_sure_mistake_costs_what_its_logits_differ_by(pair: Pair) -> None:
    """Where the wrong class is ahead of the right one by 40, cross entropy is 40, and not less."""
    cross_entropy, _ = pair
    loss, _ = cross_entropy(ALL_MISTAKEN, LABELS)
    np.testing.assert_allclose(loss, ALL_MISTAKEN.max(), rtol=1e-9)


# Tables -------------------------------------------------------------------------------------------


def gradient_of_an_embedding(pair: Pair) -> None:
    """The gradient of a row that several tokens use is the sum of theirs."""
    gradcheck(pair, IDS, draw(5, 4))


def gradient_of_a_table_used_twice(chain: Layer) -> None:
    """A table that embeds ids and scores words gets the gradients of both uses."""
    gradcheck(chain, IDS)


# Optimizers ---------------------------------------------------------------------------------------


def each_step_of_adam_is_lr_long(kind: type[Adam]) -> None:
    """With a constant gradient, small or large, each of Adam's steps changes every entry by lr.

    By one percent: in the form in which lr is corrected instead of m and v (Kingma and Ba, 2015,
    section 2), epsilon weighs more in the first steps.
    """
    gradients = {"small": np.array([1e-4, -2e-4]), "large": np.array([1e2, -3e2])}
    parameters = {name: np.zeros(2) for name in gradients}
    optimizer = kind(parameters, lr=0.01)
    for step in range(1, 6):
        optimizer.step(gradients)
        for name, theta in parameters.items():
            expected = -0.01 * step * np.sign(gradients[name])
            message = f"{name} gradients, step {step}"
            np.testing.assert_allclose(theta, expected, rtol=1e-2, err_msg=message)


def a_missing_gradient_is_refused(kind: type[Adam]) -> None:
    """A step whose gradients have other names than the parameters is an error."""
    optimizer = kind({"W_q": np.ones(2), "W_k": np.ones(2)}, lr=0.01)
    try:
        optimizer.step({"Wq": np.ones(2), "W_k": np.ones(2)})
    except (KeyError, TypeError, ValueError):
        return
    raise AssertionError("W_q has no gradient: that of Wq was left out, and the step went on")


# Tests --------------------------------------------------------------------------------------------


def a_test_fails_where_a_gradient_is_wrong(test: Callable[[Pair], None]) -> None:
    """A test of gradients passes on right code, and fails wherever one gradient is twice too large.

    The code is a feed-forward network with a residual connection and a layer norm.
    """
    test((_normed_network, _normed_network_backward))
    for i, name in enumerate(("x", "W1", "W2")):

        def broken_backward(dy: Array, cache: Any, wrong: int = i) -> tuple[Array, ...]:
            gradients = [*_normed_network_backward(dy, cache)]
            gradients[wrong] = 2.0 * gradients[wrong]
            return tuple(gradients)

        try:
            test((_normed_network, broken_backward))
        except AssertionError:
            continue
        raise AssertionError(f"the gradient of {name} is twice too large, and the test passes")


def _normed_network(x: Array, W1: Array, W2: Array) -> tuple[Array, Any]:
    """y = layer_norm(x + relu(x W1) W2)."""
    hidden, hidden_cache = F.linear(x, W1)
    active, active_cache = F.relu(hidden)
    update, update_cache = F.linear(active, W2)
    y, norm_cache = F.layer_norm(x + update, np.ones(x.shape[-1]), np.zeros(x.shape[-1]))
    return y, (hidden_cache, active_cache, update_cache, norm_cache)


def _normed_network_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """dx, dW1 and dW2."""
    hidden_cache, active_cache, update_cache, norm_cache = cache
    dsum, *_ = F.layer_norm_backward(dy, norm_cache)
    dactive, dW2 = F.linear_backward(dsum, update_cache)
    dhidden = F.relu_backward(dactive, active_cache)
    dx, dW1 = F.linear_backward(dhidden, hidden_cache)
    return dsum + dx, dW1, dW2
