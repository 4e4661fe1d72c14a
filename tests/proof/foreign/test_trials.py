"""Trials of what a file defines, at shapes that are guessed."""

from types import ModuleType

import numpy as np

from npformer.proof.trials.trial import Trial, try_module


class Scale:
    """A product with gamma whose backward pass takes x to have three axes."""

    def __init__(self, d_model):
        self.gamma = np.linspace(1.0, 2.0, d_model)

    def forward(self, x):
        self.x = x
        return x * self.gamma

    def backward(self, dy):
        self.dgamma = (dy * self.x).sum(axis=(0, 1))
        return dy * self.gamma


class ScaleOfMatrices(Scale):
    """The same with a gradient of x that is wrong for matrices alone."""

    def backward(self, dy):
        dx = super().backward(dy)
        return dx * (dy.ndim - 2 or 3)


def trial_of(kind: type) -> Trial:
    module = ModuleType(kind.__module__)
    setattr(module, kind.__name__, kind)
    (trial,) = try_module(module)
    return trial


def test_a_layer_for_three_axes_is_not_wrong_with_two():
    trial = trial_of(Scale)
    assert [what for what, _ in trial.reports] == ["x (2, 5, 6)"]
    assert trial.passed
    assert trial.limits == ["x (4, 6): there the gradient of gamma has another shape"]


def test_a_gradient_of_x_that_is_wrong_with_two_axes_is_reported():
    trial = trial_of(ScaleOfMatrices)
    assert [what for what, _ in trial.reports] == ["x (2, 5, 6)", "x (4, 6)"]
    assert not trial.passed
    assert trial.limits == []
