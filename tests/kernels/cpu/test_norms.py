import numpy as np
import pytest

from npformer import functional as F
from npformer.engine import EngineContext
from npformer.engine.cpu.norms import layer_norm, layer_norm_backward
from tests.kernels.cpu import helpers
from tests.kernels.cpu.helpers import assert_parity, expected, run

SHAPES = [(1,), (64,), (1, 257), (101, 3), (7, 13, 64), (3, 1), (2, 2, 2, 5)]


@pytest.mark.parametrize("shape", SHAPES)
def test_of_any_shape_in_pieces(shape, piece):
    assert_parity(helpers.layer_norm(shape))


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 10.0])
def test_eps(eps):
    assert_parity(helpers.layer_norm((13, 64), eps))


def test_a_large_mean_costs_no_more_digits_than_in_the_pair():
    case = helpers.layer_norm((101, 257), mean=1e4)
    x, gamma, beta = (a.astype("float32") for a in case.arrays)
    y, _ = F.layer_norm(x, gamma, beta)
    exact = expected(case, "float32")[0]
    assert np.abs(run(case, "float32")[0] - exact).max() < 2.0 * np.abs(y - exact).max()


def test_a_constant_row_is_beta_and_sends_nothing_back_that_is_not_finite():
    x, gamma, beta = np.full((3, 8), 7.0, "float32"), np.ones(8, "float32"), np.ones(8, "float32")
    y, cache = layer_norm(x, gamma, beta, context=EngineContext())
    np.testing.assert_array_equal(y, 1.0)
    assert all(np.isfinite(g).all() for g in layer_norm_backward(y, cache))


def test_no_rows_at_all():
    y, dx, dgamma, dbeta = run(helpers.layer_norm((0, 3, 8)))
    assert y.shape == dx.shape == (0, 3, 8)
    assert not dgamma.any()
    assert not dbeta.any()


def test_a_width_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="gamma has shape"):
        layer_norm(np.ones((2, 3)), np.ones(4), np.ones(3), context=EngineContext())
    with pytest.raises(TypeError, match="float32"):
        layer_norm(np.ones((2, 3), "float32"), np.ones(3), np.ones(3), context=EngineContext())
