"""gradcheck of other people's code: objects with state, losses, models, pairs of any style."""

import re

import numpy as np
import pytest

from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError
from tests.proof.foreign import layers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))
TOKENS = RNG.normal(size=(2, 5, 7))
IDS = np.array([[0, 1, 1], [5, 6, 1]])
LABELS = np.array([0, 1, 2, 0, 1])
PROBABILITIES = np.abs(X)
ONE_HOT = np.eye(5)[:, :4]

CASES = {
    "linear": (layers.Linear(4, 3), layers.Linear(4, 3, scale=2.0), [X]),
    "float32": (layers.LinearInFloat32(4, 3), layers.LinearInFloat32(4, 3, batch_mean=True), [X]),
    "parameter objects": (
        layers.NormWithParameters(7),
        layers.NormWithParameters(7, with_mean_terms=False),
        [TOKENS],
    ),
    "dictionaries": (
        layers.FeedForwardWithDictionaries(4, 6),
        layers.FeedForwardWithDictionaries(4, 6, bias_key="bias1"),
        [X],
    ),
    "updates": (layers.UpdatesItself(4, 3), layers.UpdatesItself(4, 3, late=True), [X]),
    "attributes": (layers.SoftmaxOfOutputs(), layers.SoftmaxOfOutputs(diagonal_alone=True), [X]),
    "ids": (layers.Embedding(7, 3), layers.Embedding(7, 3, assigns=True), [IDS]),
    "layers inside": (layers.Block(4), layers.Block(4, forgets_residual=True), [X]),
    "returned": (layers.ReturnsAll(4, 3), layers.ReturnsAll(4, 3, transposed=True), [X]),
    "loss object": (
        layers.CrossEntropy(),
        layers.CrossEntropy(averages_gradient=False),
        [X, LABELS],
    ),
    "model with a loss": (
        layers.TwoLayerNet(4, 6, 3),
        layers.TwoLayerNet(4, 6, 3, regularized_twice=True),
        [X, LABELS],
    ),
    "loss function": (layers.mse, layers.mse_without_mean, [X, X[::-1].copy()]),
    "log loss": (layers.log_loss, layers.log_loss_without_eps, [PROBABILITIES, ONE_HOT]),
}


@pytest.mark.parametrize("style", CASES)
def test_a_right_gradient_passes_whatever_its_style(style):
    right, _, inputs = CASES[style]
    assert gradcheck(right, *inputs).passed


@pytest.mark.parametrize("style", CASES)
def test_a_wrong_gradient_is_found_whatever_its_style(style):
    _, wrong, inputs = CASES[style]
    with pytest.raises(GradcheckError, match="the derivative is WRONG"):
        gradcheck(wrong, *inputs)


@pytest.mark.parametrize("style", CASES)
def test_neither_the_object_nor_its_inputs_are_changed(style):
    right, _, inputs = CASES[style]
    before = repr(vars(right)) if hasattr(right, "__dict__") else ""
    copies = [x.copy() for x in inputs]
    gradcheck(right, *inputs)
    assert (repr(vars(right)) if hasattr(right, "__dict__") else "") == before
    for x, copy in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(x, copy)


@pytest.mark.parametrize(
    ("style", "observation"),
    [
        ("linear", r"keeps state \(x\): of two forward passes, only the last one"),
        ("linear", "keeps its input itself, not a copy"),
        ("float32", "adds to the gradients of weight, bias: set them to 0"),
        ("updates", "updates weights, bias in its backward pass"),
        ("ids", "keeps state: of two forward passes, only the last one"),
        ("dictionaries", r"keeps state \(saved\[0\], saved\[1\]\)"),
    ],
)
def test_the_protocol_is_reported_beside_a_right_derivative(style, observation):
    right, _, inputs = CASES[style]
    report = gradcheck(right, *inputs)
    assert report.passed
    assert any(re.search(observation, line) for line in report.protocol)
    assert "the derivative is right" in str(report)


def test_a_pass_that_changes_its_input_is_reported():
    class Relu:
        def forward(self, x):
            x[x < 0.0] = 0.0
            self.mask = x > 0.0
            return x

        def backward(self, dy):
            dy *= self.mask
            return dy

    report = gradcheck(Relu(), X)
    assert "changes its input" in report.protocol
    assert "changes dy" in report.protocol


def test_params_say_where_gradients_are():
    class Scale:
        def __init__(self):
            self.s = np.array([1.0, 2.0, 3.0, 4.0])

        def forward(self, x):
            self.kept = x.copy()
            return x * self.s

        def backward(self, dy):
            self.statistics = {"of s": (dy * self.kept).sum(axis=0)}
            return dy * self.s

    report = gradcheck(Scale(), X, params={"s": "statistics['of s']"})
    assert [tensor.name for tensor in report.tensors] == ["x", "s"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"V": "dW"},
            r"params names 'V', but Linear has no array of floats there; expected",
        ),
        ({"W": "dV"}, r"gradient of W is in 'dV', but after the backward pass there is no array"),
        ({"W": "d W"}, r"'d W' is not a path; expected one such as 'W'"),
    ],
)
def test_params_that_do_not_exist_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        gradcheck(layers.Linear(4, 3), X, params=params)


def test_a_parameter_that_params_leaves_out_is_noted():
    report = gradcheck(layers.Linear(4, 3), X, params={"W": "dW"})
    assert any(
        note.startswith("b was not checked, though y depends on it") for note in report.notes
    )


def test_an_array_that_may_be_the_gradient_is_named():
    wrong = layers.FeedForwardWithDictionaries(4, 6, bias_key="bias1")
    with pytest.raises(GradcheckError, match=r"grads\['bias1'\] has its shape"):
        gradcheck(wrong, X)


def test_no_array_of_another_shape_is_taken_for_the_gradient():
    class Sum(layers.Linear):
        def backward(self, dy):
            dx = super().backward(dy)
            self.sum_of_all = np.full((1, 1), dy.sum())
            del self.db
            return dx

    with pytest.raises(GradcheckError, match="If its gradient is somewhere else, name it"):
        gradcheck(Sum(4, 3), X)


def test_a_weight_that_is_never_updated_is_named():
    class ForgetsTheBias(layers.UpdatesItself):
        def backward(self, output_error, learning_rate):
            dx = output_error @ self.weights.T
            self.weights -= learning_rate * self.input.T @ output_error
            return dx

    with pytest.raises(GradcheckError, match="bias has no gradient, though y depends on it"):
        gradcheck(ForgetsTheBias(4, 3), X)


def test_a_gradient_computed_after_the_update_has_its_cause_named():
    cause = "input_data: its gradient is computed with the weights after their update"
    with pytest.raises(GradcheckError, match=cause):
        gradcheck(layers.UpdatesItself(4, 3, late=True), X)


def test_a_residual_path_that_is_forgotten_inside_a_block_is_named():
    class NormOfBlock(layers.Block):
        def forward(self, x):
            return np.tanh(super().forward(x))

        def backward(self, dout):
            h = self.layers[1].forward(self.layers[1].x)
            return super().backward(dout * (1.0 - np.tanh(self.layers[0].x + h) ** 2))

    assert gradcheck(NormOfBlock(4), X).passed
    with pytest.raises(GradcheckError, match="the path around them, a residual connection"):
        gradcheck(NormOfBlock(4, forgets_residual=True), X)


def test_a_parameter_that_gets_no_gradient_is_named():
    wrong = layers.FeedForwardWithDictionaries(4, 6, bias_key="bias1")
    with pytest.raises(GradcheckError, match=r"params\['b1'\] has no gradient, though y depends"):
        gradcheck(wrong, X)


def test_a_table_of_constants_needs_no_gradient():
    class AddsPositions:
        def __init__(self):
            self.pe = RNG.normal(size=(5, 7))

        def forward(self, x):
            return x + self.pe

        def backward(self, dy):
            return dy

    report = gradcheck(AddsPositions(), TOKENS)
    assert any("pe got no gradient and was taken for a constant" in note for note in report.notes)


def test_draws_of_the_global_generator_are_repeated():
    class Dropout:
        def forward(self, x):
            self.mask = np.random.rand(*x.shape) < 0.8  # noqa: NPY002
            return x * self.mask / 0.8

        def backward(self, dy):
            return dy * self.mask / 0.8

    assert gradcheck(Dropout(), X).passed


def test_the_global_generator_is_left_as_it_was():
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.rand()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    gradcheck(layers.Linear(4, 3), X)
    assert np.random.rand() == expected  # noqa: NPY002


def test_a_forward_pass_that_rounds_is_noted_but_does_not_fail():
    class Tanh:
        def forward(self, x):
            self.y = np.tanh(x.astype(np.float32))
            return self.y

        def backward(self, dy):
            return dy * (1.0 - self.y**2)

    report = gradcheck(Tanh(), X)
    assert any("y has the digits of float32" in note for note in report.notes)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (layers.Linear, r"target is the class Linear; expected an object of it: gradcheck\(Linear"),
        (object(), "target is .*; expected a layer, a function with a backward pass"),
        (lambda x: x, r"returned an ndarray; expected a pair"),
    ],
)
def test_what_cannot_be_checked_is_refused(target, message):
    with pytest.raises(TypeError, match=message):
        gradcheck(target, X)


class LossThatIgnoresDy:
    """backward(dout=1) of a loss, which does not read dout."""

    def __init__(self, factor):
        self.factor = factor

    def forward(self, x, t):
        self.difference = x - t
        return 0.5 * np.sum(self.difference**2) / len(x)

    def backward(self, dout=1):
        return self.factor * self.difference / len(self.difference)


class LossThatReadsDy(LossThatIgnoresDy):
    """backward(dout=1) of a loss, which is multiplied by dout."""

    def backward(self, dout=1.0):
        return dout * super().backward()


def test_a_loss_may_read_a_dy_that_is_1_by_default():
    assert gradcheck(LossThatReadsDy(1.0), X, X[::-1].copy()).passed


def test_a_loss_may_ignore_a_dy_that_is_1_by_default():
    assert gradcheck(LossThatIgnoresDy(1.0), X, X[::-1].copy()).passed


def test_a_wrong_loss_that_ignores_dy_is_named_without_a_random_factor():
    with pytest.raises(GradcheckError, match="backward is 5 times the derivative"):
        gradcheck(LossThatIgnoresDy(5.0), X, X[::-1].copy())


def test_an_input_without_a_gradient_is_noted():
    class ForgetsToReturn(layers.Linear):
        def backward(self, dout):
            super().backward(dout)

    report = gradcheck(ForgetsToReturn(4, 3), X)
    assert any("x got no gradient and was taken for a constant" in note for note in report.notes)


def test_an_object_that_keeps_its_first_input_for_ever_is_reported():
    class Frozen(layers.Linear):
        def forward(self, x):
            if not hasattr(self, "x"):
                self.x = x
            return x @ self.W + self.b

    report = gradcheck(Frozen(4, 3), X)
    assert any("keeps what the first forward pass has seen" in line for line in report.protocol)


def test_a_function_that_returns_lists_is_refused_in_words():
    with pytest.raises(TypeError, match=r"a function that returns \(loss, gradient\)"):
        gradcheck(lambda x: ([x[0], x[1:]], [x]), X)


def affine_forward(x, W):
    return x @ W, (x, W)


def affine_backward(dy, cache):
    x, W = cache
    return dy @ W.T, x.T @ dy


def test_a_forward_function_finds_its_backward_function_by_its_name():
    assert gradcheck(affine_forward, X, X.T.copy()).passed


class Recurrent:
    """Cells made in the forward pass write into the lists of the layer."""

    def __init__(self):
        self.params = [RNG.normal(size=(4, 4))]
        self.grads = [np.zeros((4, 4))]

    def forward(self, x):
        (W,) = self.params
        self.cells = [layers.Linear(4, 4) for _ in range(2)]
        for cell in self.cells:
            cell.W = W
            x = cell.forward(x)
        return x

    def backward(self, dy):
        self.grads[0][...] = 0.0
        for cell in reversed(self.cells):
            dy = cell.backward(dy)
            self.grads[0] += cell.dW
        return dy


def test_a_buffer_of_gradients_is_no_parameter():
    report = gradcheck(Recurrent(), X)
    assert [tensor.name for tensor in report.tensors] == ["x", "params[0]"]
