"""Parameters and gradients that an object hands out itself are paired as its optimizer does."""

import numpy as np
import pytest

from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))


class Product:
    """y = (x A) * (x B), with gradients under names that say nothing."""

    def __init__(self, swaps=False):
        self.A = RNG.normal(size=(4, 3))
        self.B = RNG.normal(size=(4, 3))
        self.swaps = swaps

    def forward(self, x):
        self.x = x
        return (x @ self.A) * (x @ self.B)

    def backward(self, dy):
        of_a, of_b = dy * (self.x @ self.B), dy * (self.x @ self.A)
        gradients = [self.x.T @ of_a, self.x.T @ of_b]
        self.one, self.two = reversed(gradients) if self.swaps else gradients
        return of_a @ self.A.T + of_b @ self.B.T


class WithMethods(Product):
    def parameters(self):
        return [self.A, self.B]

    def gradients(self):
        return [self.one, self.two]


class WithGenerators(Product):
    def parameters(self):
        yield from (self.A, self.B)

    def grads(self):
        yield from (self.one, self.two)


class WithPairs(Product):
    def params_and_grads(self):
        return zip((self.A, self.B), (self.one, self.two), strict=True)


class WithDictionaries(Product):
    def get_params(self):
        return {"A": self.A, "B": self.B}

    def get_grads(self):
        return {"dA": self.one, "dB": self.two}


class WithProperties(Product):
    @property
    def params(self):
        return {"first": {"W": self.A}, "second": {"W": self.B}}

    @property
    def grads(self):
        return {"second": {"W": self.two}, "first": {"W": self.one}}


class WithLists(Product):
    def __init__(self, swaps=False):
        super().__init__(swaps)
        self.params = [self.A, self.B]

    def backward(self, dy):
        dx = super().backward(dy)
        self.grads = [self.one, self.two]
        return dx


class Inside:
    def __init__(self, swaps=False):
        self.layers = [WithMethods(swaps)]

    def forward(self, x):
        return self.layers[0].forward(x)

    def backward(self, dy):
        return self.layers[0].backward(dy)


STYLES = [
    WithMethods,
    WithGenerators,
    WithPairs,
    WithDictionaries,
    WithProperties,
    WithLists,
    Inside,
]


@pytest.mark.parametrize("style", STYLES)
def test_gradients_that_are_handed_out_are_found(style):
    report = gradcheck(style(), X)
    assert len(report.tensors) == 3


@pytest.mark.parametrize("style", STYLES)
def test_gradients_that_are_handed_out_in_another_order_are_wrong(style):
    with pytest.raises(GradcheckError, match=r"\bA .*<-- wrong"):
        gradcheck(style(swaps=True), X)


def test_params_may_name_a_method_that_hands_out_gradients():
    report = gradcheck(WithMethods(), X, params={"A": "gradients()[0]"})
    assert [tensor.name for tensor in report.tensors] == ["x", "A"]


def test_gradients_of_the_right_names_come_before_a_list_that_is_never_written():
    class StaleList(WithMethods):
        def backward(self, dy):
            dx = super().backward(dy)
            self.dA, self.dB = self.one, self.two
            return dx

        def gradients(self):
            return [np.zeros((4, 3)), np.zeros((4, 3))]

    assert len(gradcheck(StaleList(), X).tensors) == 3
