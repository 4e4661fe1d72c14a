"""gradcheck of functions and modules of JAX, MLX, tinygrad and autograd."""

import numpy as np
import pytest

from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError
from tests.needs import NEEDS

X = np.random.default_rng(0).normal(size=(5, 4))
W = np.random.default_rng(1).normal(size=(4, 3))


def needed(library):
    return pytest.importorskip(library, reason=NEEDS[library.partition(".")[0]])


def names_of(report):
    return [tensor.name for tensor in report.tensors]


def jax_layer(factor):
    """Return tanh(x^2 W), where the derivative of x^2 is written as factor * x."""
    jax = needed("jax")

    @jax.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, dy: (factor * x * dy,))

    def layer(x, params):
        return jax.numpy.tanh(square(x) @ params["W"])

    return layer


def test_a_right_backward_pass_written_for_jax_passes_in_float64():
    report = gradcheck(jax_layer(2.0), X, {"W": W})
    assert names_of(report) == ["x", "params['W']"]
    assert report.error < 1e-7


def test_a_wrong_backward_pass_written_for_jax_is_found():
    layer = jax_layer(3.0)
    with pytest.raises(GradcheckError, match="the derivative is WRONG"):
        gradcheck(layer, X, {"W": W})


def test_a_module_of_equinox_is_a_tree_of_arrays():
    equinox, jax = needed("equinox"), needed("jax")
    linear = equinox.nn.Linear(4, 3, key=jax.random.PRNGKey(0))
    report = gradcheck(linear, X[0])
    assert names_of(report) == ["x", "weight", "bias"]


def test_a_function_of_autograd_is_compared():
    autograd = needed("autograd")
    anp = autograd.numpy

    def layer(x, W):
        return anp.tanh(anp.dot(x, W))

    assert names_of(gradcheck(layer, X, W)) == ["x", "W"]


def test_mlx_is_compared_within_the_tolerance_of_float32():
    mx = needed("mlx.core")

    def layer(x, W):
        return mx.tanh(x @ W)

    report = gradcheck(layer, mx.array(X), mx.array(W))
    assert names_of(report) == ["x", "W"]
    assert any("float32" in note for note in report.notes)


def test_a_module_of_mlx_is_left_as_it_was():
    needed("mlx.core")
    nn = needed("mlx.nn")
    mx = needed("mlx.core")
    linear = nn.Linear(4, 3)
    weight = np.array(linear.weight)
    assert names_of(gradcheck(linear, mx.array(X))) == ["x", "weight", "bias"]
    np.testing.assert_array_equal(np.array(linear.weight), weight)


def test_a_module_of_tinygrad_is_compared(monkeypatch):
    monkeypatch.setenv("DEV", "PYTHON")  # needs no compiler
    needed("tinygrad")
    from tinygrad import Tensor
    from tinygrad.nn import Linear

    class Layer:
        def __init__(self):
            self.linear = Linear(4, 3)

        def __call__(self, x):
            return self.linear(x).tanh()

    report = gradcheck(Layer(), Tensor(X))
    assert names_of(report) == ["x", "linear.weight", "linear.bias"]
