"""What a file defines is tried with inputs that fit it: images, columns, states, masks, modes."""

from types import ModuleType

import numpy as np
import pytest

from npformer.proof.trials.trial import Trial, try_module


def trials_of(*definitions: object) -> list[Trial]:
    module = ModuleType(definitions[0].__module__)
    for definition in definitions:
        setattr(module, definition.__name__, definition)
    return list(try_module(module))


class GlobalPool:
    """The mean of each channel of an image."""

    def forward(self, x):
        batch, channels, height, width = x.shape
        self.shape = x.shape
        return x.reshape(batch, channels, height * width).mean(2)

    def backward(self, dy):
        n = self.shape[2] * self.shape[3]
        return np.broadcast_to(dy[:, :, None, None] / n, self.shape)


class MaxPool2d:
    """The largest number of each window of two by two."""

    def __init__(self, pool_size):
        self.size = pool_size

    def forward(self, x):
        batch, channels, height, width = x.shape
        n = self.size
        self.windows = x.reshape(batch, channels, height // n, n, width // n, n)
        y = self.windows.max(axis=(3, 5))
        self.is_largest = self.windows == y[:, :, :, None, :, None]
        return y

    def backward(self, dy):
        spread = self.is_largest * dy[:, :, :, None, :, None]
        batch, channels, rows, n, columns, _ = spread.shape
        return spread.reshape(batch, channels, rows * n, columns * n)


class DenseOfColumns:
    """A linear layer of one column, which updates itself."""

    def __init__(self, input_size, output_size, lr=0.01):
        rng = np.random.default_rng(0)
        self.weights = rng.normal(size=(output_size, input_size))
        self.bias = rng.normal(size=(output_size, 1))
        self.lr = lr

    def forward(self, x):
        self.x = x
        return self.weights @ x + self.bias

    def backward(self, dy):
        dx = self.weights.T @ dy
        self.weights -= self.lr * dy @ self.x.T
        self.bias -= self.lr * dy
        return dx


class DenseThatStepsTwice(DenseOfColumns):
    """The same with a bias that is updated twice."""

    def backward(self, dy):
        self.bias -= self.lr * dy
        return super().backward(dy)


class Affine:
    """A linear layer that is given its weights."""

    def __init__(self, W, b):
        self.W, self.b = W, b

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        rows, drows = (array.reshape(-1, array.shape[-1]) for array in (self.x, dout))
        self.dW, self.db = rows.T @ drows, drows.sum(0)
        return dout @ self.W.T


def rnn_step_forward(x, prev_h, Wx, Wh, b):
    h = np.tanh(x @ Wx + prev_h @ Wh + b)
    return h, (x, prev_h, Wx, Wh, h)


def rnn_step_backward(dh, cache):
    x, prev_h, Wx, Wh, h = cache
    da = dh * (1.0 - h**2)
    return da @ Wx.T, da @ Wh.T, x.T @ da, prev_h.T @ da, da.sum(0)


def batchnorm_forward(x, gamma, beta, bn_param):
    std = np.sqrt(x.var(axis=0) + bn_param["eps"])
    z = (x - x.mean(axis=0)) / std
    return gamma * z + beta, (z, gamma, std)


def batchnorm_backward(dout, cache):
    z, gamma, std = cache
    dz = dout * gamma
    dx = (dz - dz.mean(axis=0) - z * (dz * z).mean(axis=0)) / std
    return dx, (dout * z).sum(axis=0), dout.sum(axis=0)


def linear_loss(W, X, y):
    scores = X.dot(W)
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    n = len(y)
    loss = -np.log(p[np.arange(n), y]).mean()
    p[np.arange(n), y] -= 1.0
    return loss, X.T.dot(p) / n


@pytest.mark.parametrize(
    ("definitions", "shapes"),
    [
        ((GlobalPool,), ["x (2, 6, 5, 7)", "x (2, 6, 4, 8)"]),
        ((MaxPool2d,), ["x (2, 6, 4, 8)"]),
        ((DenseOfColumns,), ["x (6, 1)"]),
        ((Affine,), ["x (2, 5, 6)", "x (4, 6)"]),
        (
            (rnn_step_forward, rnn_step_backward),
            ["x (4, 6), prev_h (4, 7), Wx (6, 7), Wh (7, 7), b (7,)"],
        ),
        ((linear_loss,), ["W (6, 3), X (4, 6), y (4,) of ids"]),
    ],
    ids=lambda value: value[0].__name__ if isinstance(value, tuple) else "",
)
def test_shapes_that_a_definition_takes_are_found(definitions, shapes):
    (trial,) = trials_of(*definitions)
    assert [what for what, _ in trial.reports if what.startswith(("x", "W"))] == shapes


@pytest.mark.parametrize(
    "definitions",
    [
        (GlobalPool,),
        (MaxPool2d,),
        (DenseOfColumns,),
        (Affine,),
        (rnn_step_forward, rnn_step_backward),
        (batchnorm_forward, batchnorm_backward),
        (linear_loss,),
    ],
    ids=lambda definitions: definitions[0].__name__,
)
def test_a_right_definition_passes(definitions):
    (trial,) = trials_of(*definitions)
    assert trial.reports
    assert trial.passed


def test_a_dictionary_of_settings_is_given():
    (trial,) = trials_of(batchnorm_forward, batchnorm_backward)
    what, _ = trial.reports[0]
    assert "bn_param={'mode': 'train'" in what


def test_the_steps_of_a_layer_with_its_own_rate_are_its_gradients():
    (trial,) = trials_of(DenseThatStepsTwice)
    (_, report), *_ = trial.reports
    assert [tensor.name for tensor in report.wrong_tensors()] == ["bias"]


class Base:
    """A base class whose passes are left to others."""

    def forward(self, x):
        raise NotImplementedError

    def backward(self, dy):
        pass


def test_a_base_class_is_not_tried():
    assert trials_of(Base) == []


class MeanOfKept:
    """The mean over the tokens that a mask keeps, its gradient divided by the length."""

    def forward(self, x, mask=None):
        if mask is None:
            mask = np.ones(x.shape[:2])
        self.mask = mask
        return (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)

    def backward(self, dy):
        length = self.mask.shape[1]
        return np.repeat(dy[:, None] / length, length, axis=1)


class NeedsMask(MeanOfKept):
    """The same for a mask that has no default."""

    def forward(self, x, mask):
        return super().forward(x, mask[:, :])


@pytest.mark.parametrize("kind", [MeanOfKept, NeedsMask])
def test_a_gradient_that_is_wrong_with_a_mask_is_found(kind):
    (trial,) = trials_of(kind)
    wrong = [what for what, report in trial.reports if not report.passed]
    assert wrong == ["x (2, 5, 6), mask (2, 5)"]


class OddMask:
    """A layer that takes no usual mask."""

    def forward(self, x, mask=None):
        if mask is not None:
            raise ValueError("not for this mask")
        return 2.0 * x

    def backward(self, dy):
        return 2.0 * dy


def test_a_mask_that_could_not_be_tried_is_said():
    (trial,) = trials_of(OddMask)
    assert trial.untested == ["a mask: those of five shapes were not taken"]


class Centred:
    """Without the mean of the batch in training, its gradient as in training."""

    def forward(self, x, training=True):
        return x - x.mean(axis=0) if training else x

    def backward(self, dy):
        return dy - dy.mean(axis=0)


class Switched(Centred):
    """The same for a flag that has no default."""

    def forward(self, x, training):
        return super().forward(x, training)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Centred, "x (2, 5, 6), training=False"),
        (Switched, "x (2, 5, 6), training=False"),
    ],
)
def test_a_gradient_that_is_wrong_at_evaluation_is_found(kind, words):
    (trial,) = trials_of(kind)
    assert words in [what for what, report in trial.reports if not report.passed]


class OnlyTrained(Centred):
    """A layer without a backward pass at evaluation."""

    def forward(self, x, training=True):
        self.training = training
        return super().forward(x, training)

    def backward(self, dy):
        if not self.training:
            raise RuntimeError("no backward pass at evaluation")
        return super().backward(dy)


def test_a_mode_without_a_backward_pass_is_no_error():
    (trial,) = trials_of(OnlyTrained)
    assert trial.passed


def test_a_mode_without_a_backward_pass_is_said():
    (trial,) = trials_of(OnlyTrained)
    assert "x (2, 5, 6), training=False: RuntimeError" in trial.untested[0]


def add_forward(first, other):
    raise ValueError("not today")


def add_backward(dy, cache):
    return dy, dy


def test_advice_names_all_arguments():
    (trial,) = trials_of(add_forward, add_backward)
    assert trial.advice == "nf.gradcheck((add_forward, add_backward), first, other)"
