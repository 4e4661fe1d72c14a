"""What gradcheck would not see by the values that it is given, and how it says so."""

import numpy as np
import pytest

from npformer import functional as F
from npformer import layers as L
from npformer.core import Layer, Parameter
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError


def refused(target, *inputs, **options):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(target, *inputs, **options)
    return caught.value.report


class SquareThatKeepsItsInput(Layer):
    """y = x * x; x itself is kept, in place of a cache."""

    def forward(self, x, context):
        self.x = x
        return x * x, None

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * self.x


class EmbeddingThatKeepsItsIds(L.Embedding):
    def forward(self, x, context):
        y, self.cache = super().forward(x, context)
        return y, None

    def backward(self, dy, cache, gradients):
        return super().backward(dy, self.cache, gradients)


def test_an_input_that_is_kept_by_reference_is_noticed(rng):
    report = refused(SquareThatKeepsItsInput(), rng.normal(size=(3, 4)))
    assert any("applied twice" in rule for rule in report.broken_rules)


def test_ids_that_are_kept_are_noticed():
    layer = EmbeddingThatKeepsItsIds(7, 4, seed=0, dtype="float64")
    report = refused(layer, np.array([[0, 1, 2], [4, 5, 6]]))
    assert any("applied twice" in rule for rule in report.broken_rules)


class ResidualThatBeginsAtZero(Layer):
    """y = x + relu(x W1) W2, where W2 begins at 0."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.first = Parameter(np.random.default_rng(0).normal(size=(3, 5)))
        self.second = Parameter(np.zeros((5, 3)))

    def forward(self, x, context):
        hidden = np.maximum(x @ self.first.value, 0.0)
        return x + hidden @ self.second.value, (x.copy(), hidden)

    def backward(self, dy, cache, gradients):
        x, hidden = cache
        dhidden = (dy @ self.second.value.T) * (hidden > 0.0)
        gradients.add(self.second, hidden.reshape(-1, 5).T @ dy.reshape(-1, 3))
        gradients.add(self.first, self.factor * x.reshape(-1, 3).T @ dhidden.reshape(-1, 5))
        return dy + dhidden @ self.first.value.T


def test_a_wrong_multiple_of_a_zero_gradient_is_seen_at_other_values(rng):
    report = refused(ResidualThatBeginsAtZero(-3.0), rng.normal(size=(2, 4, 3)))
    (wrong,) = [tensor for tensor in report.tensors if tensor.error > report.tolerance]
    assert wrong.name == "first"
    assert wrong.analytic == pytest.approx(-3.0 * wrong.numeric)


def test_the_report_says_what_was_compared_at_other_values(rng):
    report = gradcheck(ResidualThatBeginsAtZero(1.0), rng.normal(size=(2, 4, 3)))
    note = "first was compared at other values, because its derivative is 0"
    assert note in report.notes
    assert f"note: {note}" in str(report)


def test_the_report_says_what_could_not_be_compared(rng):
    def forward(x, unused):
        return 2.0 * x, None

    report = gradcheck((forward, lambda dy, _: (2.0 * dy, 0.0 * dy)), *rng.normal(size=(2, 3)))
    assert "unused was not compared: its derivative is 0, also at other values" in report.notes


@pytest.mark.parametrize("rounds_back", [False, True])
def test_a_forward_pass_that_rounds_to_float32_is_told_from_a_wrong_gradient(rng, rounds_back):
    def forward(x):
        y = np.tanh(x.astype("float32"))
        return (y.astype("float64") if rounds_back else y), x

    def backward(dy, x):
        return dy * (1.0 - np.tanh(x) ** 2)

    report = refused((forward, backward), rng.normal(size=(3, 4)))
    (rule,) = report.broken_rules
    assert "y has the digits of float32, though all arrays are float64" in rule
    assert report.error <= report.tolerance


def test_outputs_that_are_round_numbers_are_not_taken_for_float32():
    x = np.array([1.0, 2.5, -3.0])
    assert gradcheck(F.relu, x).passed


def test_inputs_that_came_from_float32_are_not_taken_for_a_forward_pass_that_rounds(rng):
    x = rng.normal(size=(3, 4)).astype("float32").astype("float64")
    assert gradcheck((lambda x: (x.T, None), lambda dy, _: dy.T), x).passed


@pytest.mark.parametrize(
    ("shape", "equation"),
    [((2, 4, 8), "2 * 4 = 8"), ((8, 1, 2, 4), "2 * 4 = 8"), ((2, 5, 8), "")],
)
def test_a_size_that_is_the_product_of_others_is_named(rng, shape, equation):
    report = gradcheck(L.LayerNorm(shape[-1], dtype="float64"), rng.normal(size=shape))
    assert bool(report.notes) == bool(equation)
    assert equation in "".join(report.notes)
