"""gradcheck of modules and functions of PyTorch."""

import numpy as np
import pytest

from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError
from tests.needs import NEEDS
from tests.proof.foreign.test_trials_inputs import trials_of

torch = pytest.importorskip("torch", reason=NEEDS["torch"])

X = np.random.default_rng(0).normal(size=(2, 5, 4))


class Square(torch.autograd.Function):
    """y = x^2 with a backward pass written by hand."""

    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return Square.factor * dy * x


class Module(torch.nn.Module):
    """A module of float32 that squares by the function above."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.LayerNorm(3)

    def forward(self, x):
        return self.norm(Square.apply(self.linear(x)))


@pytest.mark.parametrize("x", [X, torch.tensor(X), torch.tensor(X, dtype=torch.float32)])
def test_a_right_module_passes_in_float64_whatever_its_dtype(x):
    report = gradcheck(Module(), x)
    names = ["x", "linear.weight", "linear.bias", "norm.weight", "norm.bias"]
    assert [tensor.name for tensor in report.tensors] == names
    assert report.error < 1e-8


def test_a_wrong_backward_pass_inside_a_module_is_found(monkeypatch):
    monkeypatch.setattr(Square, "factor", 3.0)
    with pytest.raises(GradcheckError, match="the derivative is WRONG") as caught:
        gradcheck(Module(), X)
    wrong = [t.name for t in caught.value.report.tensors if t.error > 1e-6]
    assert wrong == ["x", "linear.weight", "linear.bias"]


def test_the_function_itself_may_be_handed_over(monkeypatch):
    assert gradcheck(Square.apply, torch.tensor(X)).passed
    monkeypatch.setattr(Square, "factor", 1.0)
    with pytest.raises(GradcheckError, match="backward is 1/2 of the derivative"):
        gradcheck(Square.apply, torch.tensor(X))


def test_a_function_that_reads_torch_may_be_given_arrays():
    def softmax(x):
        return torch.softmax(x, dim=-1)

    assert gradcheck(softmax, X).passed


def test_ids_are_passed_on():
    embedding = torch.nn.Embedding(7, 3)
    report = gradcheck(embedding, np.array([[0, 1, 1], [5, 6, 1]]))
    assert [tensor.name for tensor in report.tensors] == ["weight"]


def test_a_module_that_detaches_a_parameter_is_found():
    class Detaches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.scale.detach()

    with pytest.raises(GradcheckError, match="scale gets no gradient from torch, though y depends"):
        gradcheck(Detaches(), X)


def test_the_module_is_left_as_it_was():
    module = Module()
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    gradcheck(module, X)
    for name, parameter in module.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None


def test_the_class_of_a_function_is_applied():
    classes, applied = gradcheck(Square, X), gradcheck(Square.apply, X)
    assert [t.error for t in classes.tensors] == [t.error for t in applied.tensors]


class Scale(torch.autograd.Function):
    """y = x w with a gradient of w that is three times too large."""

    @staticmethod
    def forward(ctx, x, gamma):
        ctx.save_for_backward(x, gamma)
        return x * gamma

    @staticmethod
    def backward(ctx, dy):
        x, gamma = ctx.saved_tensors
        return dy * gamma, 3.0 * (dy * x).reshape(-1, x.shape[-1]).sum(0)


def test_a_function_that_no_module_of_a_file_applies_is_tried():
    (trial,) = trials_of(Scale)
    assert [what for what, _ in trial.reports] == [
        "x (2, 5, 6), gamma (6,)",
        "x (4, 6), gamma (6,)",
    ]


def test_a_wrong_gradient_of_such_a_function_is_found():
    (trial,) = trials_of(Scale)
    assert not trial.passed


def test_a_function_that_a_module_applies_is_not_tried_twice():
    assert [trial.title for trial in trials_of(Square, Module)] == ["Module()"]
