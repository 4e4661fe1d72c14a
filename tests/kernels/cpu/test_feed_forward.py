import numpy as np
import pytest

from npformer.engine import EngineContext
from npformer.engine.cpu.activations import ACTIVATIONS
from npformer.engine.cpu.feed_forward import feed_forward
from npformer.layers import ACTIVATIONS as LAYERS
from tests.kernels.cpu import helpers
from tests.kernels.cpu.helpers import assert_close, assert_parity, expected, forward, run


@pytest.fixture(params=sorted(LAYERS))
def activation(request):
    return request.param


def test_there_is_a_kernel_for_each_activation():
    assert set(ACTIVATIONS) == set(LAYERS)


@pytest.mark.parametrize(
    ("shape", "d_ff"),
    [((1,), 1), ((1, 64), 257), ((101, 1), 3), ((2, 7, 3), 64), ((13, 257), 1), ((2, 2, 3, 5), 7)],
)
def test_of_any_shape_in_pieces(shape, d_ff, activation, piece):
    assert_parity(helpers.feed_forward(shape, d_ff, activation))


@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_small_and_large_activations(scale, activation):
    assert_parity(helpers.feed_forward((5, 7, 16), 23, activation, scale))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_without_a_backward_pass_y_is_right_in_pieces(activation, piece, dtype):
    case = helpers.feed_forward((2, 7, 16), 23, activation)
    arrays = tuple(a.astype(dtype) for a in case.arrays)
    y, _ = forward(case, arrays, case.context(keep=False))
    assert_close([y], expected(case, dtype)[:1], 1e-12 if dtype == "float64" else 5e-6)


def test_huge_activations_give_no_warning(activation):
    """x^12 overflows in float32 long before x does."""
    ours = run(helpers.feed_forward((5, 16), 23, activation, 1e9), "float32")
    assert all(np.isfinite(a).all() for a in ours)


def test_no_rows_at_all(activation):
    y, dx, *dmaps = run(helpers.feed_forward((0, 3, 8), 5, activation))
    assert y.shape == dx.shape == (0, 3, 8)
    assert not any(g.any() for g in dmaps)


def test_what_does_not_fit_is_refused():
    x, W1, b1, W2, b2 = helpers.feed_forward((2, 8), 5).arrays
    with pytest.raises(ValueError, match="x has shape"):
        feed_forward(x[:, 1:], W1, b1, W2, b2, "gelu", EngineContext())
    with pytest.raises(TypeError, match="float32"):
        feed_forward(x.astype("float32"), W1, b1, W2, b2, "gelu", EngineContext())
