"""SGD: its steps by hand, its settings, and what it keeps."""

import copy

import numpy as np
import pytest

import npformer as nf
from npformer.optim import Optimizer, cosine

G = np.array([1.0, -2.0])


def steps(n=3, **settings):
    """Return the path of a parameter that starts at 0, with the same gradient in each step."""
    theta = {"w": np.zeros(2)}
    optimizer, path = nf.SGD(theta, 0.5, **settings), []
    for _ in range(n):
        optimizer.step({"w": G})
        path.append(theta["w"].copy())
    return np.array(path)


@pytest.mark.parametrize(
    ("settings", "sums"),
    [
        ({}, (1.0, 2.0, 3.0)),
        ({"momentum": 0.5}, (1.0, 1.0 + 1.5, 1.0 + 1.5 + 1.75)),
        ({"momentum": 0.5, "nesterov": True}, (1.5, 1.5 + 1.75, 1.5 + 1.75 + 1.875)),
        ({"schedule": cosine(3, final=0.5)}, (0.875, 0.875 + 0.625, 0.875 + 0.625 + 0.5)),
    ],
)
def test_steps_by_hand(settings, sums):
    np.testing.assert_allclose(steps(**settings), -0.5 * np.outer(sums, G), rtol=1e-15)


@pytest.mark.parametrize("kind", [nf.Adam, nf.SGD])
def test_optimizers_keep_the_protocol(kind):
    assert isinstance(kind({"w": np.zeros(2)}, 0.5), Optimizer)


def test_it_goes_on_from_its_state_as_if_nothing_had_happened(small_model, token_batch):
    def step(model, optimizer):
        optimizer.step(model.loss_and_gradients(*token_batch)[1])

    model = small_model()
    optimizer = nf.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
    step(model, optimizer)
    values, arrays = optimizer.state()
    assert values == {
        "lr": 0.1,
        "momentum": 0.9,
        "nesterov": True,
        "steps": 1,
        "schedule": "constant()",
    }
    assert arrays.keys() == {f"velocity.{name}" for name in model.parameters()}
    other = copy.deepcopy(model)
    resumed = nf.SGD(other.parameters(), 0.3)
    resumed.restore(values, arrays)
    for one in ((model, optimizer), (other, resumed)):
        step(*one)
    np.testing.assert_array_equal(model.parameters().flat, other.parameters().flat)
    with pytest.raises(ValueError, match=r"the optimizer's values are .*expected \['lr', 'betas'"):
        nf.Adam(other.parameters()).restore(values, arrays)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0.0}, "lr is 0.0"),
        ({"lr": 0.1, "momentum": 1.0}, "momentum is 1.0"),
        ({"lr": 0.1, "nesterov": True}, "nesterov is True and momentum is 0"),
    ],
)
def test_settings_that_make_no_step_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        nf.SGD({"w": np.zeros(2)}, **settings)


def test_what_is_not_finite_is_refused_and_what_cannot_be_squared_is_not():
    theta = {"w": np.ones(2, "float32")}
    optimizer = nf.SGD(theta, 1e-30)
    optimizer.step({"w": np.array([1e30, 0.0], "float32")})
    np.testing.assert_allclose(theta["w"], [0.0, 1.0], atol=1e-6)
    for wrong, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(nf.NonFiniteGradientError, match=f"the gradient of w holds {word}"):
            optimizer.step({"w": np.array([0.0, wrong], "float32")})
    assert optimizer.steps == 1
