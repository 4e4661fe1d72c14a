"""Numbers that an object trains are checked as arrays are; all other numbers are left alone."""

import numpy as np
import pytest

from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))


class Scale:
    """y = gamma x / t, with the number gamma and a constant number t beside its change dt."""

    def __init__(self, factor=1.0, gamma=1.5):
        self.gamma = gamma
        self.factor = factor
        self.t, self.dt = 2.0, 0.1
        self.calls = 0

    def forward(self, x):
        self.x = x
        return self.gamma * x / self.t

    def gradient_of_gamma(self, dy):
        return self.factor * np.sum(dy * self.x) / self.t


class InAttribute(Scale):
    def backward(self, dy):
        self.dgamma = self.gradient_of_gamma(dy)
        return self.gamma * dy / self.t


class InBuffer(Scale):
    def __init__(self, factor=1.0, gamma=1.5):
        super().__init__(factor, gamma)
        self.grad_gamma = np.zeros(1)

    def backward(self, dy):
        self.grad_gamma += self.gradient_of_gamma(dy)
        return self.gamma * dy / self.t


class InDictionary(Scale):
    def __init__(self, factor=1.0, gamma=1.5):
        super().__init__(factor, gamma)
        self.grads = {}

    def backward(self, dy):
        self.grads["gamma"] = float(self.gradient_of_gamma(dy))
        return self.gamma * dy / self.t


class Returned(Scale):
    def backward(self, dy):
        return self.gamma * dy / self.t, self.gradient_of_gamma(dy)


class ReturnedByName(Scale):
    def backward(self, dy):
        return {"dx": self.gamma * dy / self.t, "dgamma": self.gradient_of_gamma(dy)}


class Updated(Scale):
    def backward(self, dy, lr):
        dx = self.gamma * dy / self.t
        self.gamma -= lr * self.gradient_of_gamma(dy)
        self.calls += 1
        return dx


STYLES = [InAttribute, InBuffer, InDictionary, Returned, ReturnedByName, Updated]


@pytest.mark.parametrize("number", [1.5, np.float64(1.5), np.float32(1.5), 2])
@pytest.mark.parametrize("style", STYLES)
def test_a_number_with_its_gradient_is_checked(style, number):
    report = gradcheck(style(gamma=number), X)
    assert [tensor.name for tensor in report.tensors] == ["x", "gamma"]


@pytest.mark.parametrize("style", STYLES)
def test_a_wrong_gradient_of_a_number_is_found(style):
    with pytest.raises(GradcheckError, match=r"gamma .*<-- wrong"):
        gradcheck(style(factor=0.5), X)


def test_params_may_name_a_number():
    report = gradcheck(InAttribute(), X, params={"gamma": "dgamma"})
    assert [tensor.name for tensor in report.tensors] == ["x", "gamma"]


def test_a_number_whose_gradient_stays_0_is_wrong():
    class Forgets(InAttribute):
        def __init__(self):
            super().__init__()
            self.dgamma = 0.0

        def backward(self, dy):
            return self.gamma * dy / self.t

    with pytest.raises(GradcheckError, match=r"gamma .*<-- wrong"):
        gradcheck(Forgets(), X)


def test_the_object_keeps_its_number():
    layer = InAttribute()
    gradcheck(layer, X)
    assert type(layer.gamma) is float
