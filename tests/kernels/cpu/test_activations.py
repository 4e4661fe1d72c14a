"""Activations and their derivatives, and how well the GELU's fitted polynomial matches erf."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from npformer.engine.cpu.activations import ACTIVATIONS, FEW, bias_gelu
from npformer.engine.cpu.normal import LOG_ODDS
from tests import normal_tails
from tests.kernels import helpers

GRID = np.unique(np.linspace(-20.0, 20.0, 2_000_001).astype("float32"))


def run_kernel(name, x):
    """Return y and dy/dx of a kernel."""
    rows = x[None].copy()
    y, derivative = np.empty_like(rows), np.ones_like(rows)
    ACTIVATIONS[name](rows, np.zeros(len(x), x.dtype), y, derivative)
    return y[0], derivative[0]


def run_pair(name, x):
    """Return y and dy/dx of the pair."""
    activate, activate_backward, options = helpers.ACTIVATIONS[name]
    y, cache = activate(x, **options)
    return y, activate_backward(np.ones_like(x), cache)


def test_gelu_in_float32_is_exact_to_6e_7():
    x = GRID.astype("float64")
    y, derivative = run_kernel("gelu", GRID)
    exact, density = x * ndtr(x), np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    assert np.abs(y - exact).max() < 6e-7  # half a unit in the last place of 4 is 2.4e-7
    assert np.abs(derivative - (ndtr(x) + x * density)).max() < 2e-7


@pytest.mark.parametrize("n", [FEW, 2 * FEW])
def test_gelu_in_float32_is_right_to_14_units_in_the_last_place_in_its_tails_as_well(n):
    x = np.resize(normal_tails.GRID, (3, n)).astype("float32")
    for row in x:
        assert max(normal_tails.gelu_errors(row, *run_kernel("gelu", row))) < 14.0


def test_gelu_in_float64_is_that_of_the_pair():
    x = np.linspace(-37.0, 8.0, 9001)
    for computed, expected in zip(run_kernel("gelu", x), run_pair("gelu", x), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=2e-15, atol=3e-16)
        np.testing.assert_allclose(computed[x < -1.5], expected[x < -1.5], rtol=3e-15)


def test_gelu_has_the_sign_of_x():
    y, _ = run_kernel("gelu", GRID)
    assert (y[GRID > 0.0] > 0.0).all()
    assert (y[GRID < 0.0] <= 0.0).all()
    assert (y[GRID == 0.0] == 0.0).all()


def test_gelu_is_at_most_x_if_x_is_positive():
    y, _ = run_kernel("gelu", GRID)
    assert (y[GRID > 0.0] <= GRID[GRID > 0.0]).all()


def test_the_log_odds_rise_from_0_so_that_the_gate_never_comes_back():
    """Phi has to stay at 1 beyond 7, where nothing was fitted."""
    x = np.concatenate([np.linspace(0.0, 60.0, 600_001), np.geomspace(60.1, 1e20, 100_000)])
    square, log_odds = x * x, np.full_like(x, LOG_ODDS[-1])
    for coefficient in LOG_ODDS[-2::-1]:
        log_odds = log_odds * square + coefficient
    log_odds *= x
    assert log_odds[0] == 0.0
    assert (np.diff(log_odds) > 0.0).all()
    assert np.exp(-log_odds[x > 7.0].min()) < 1e-10


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_y_is_that_of_the_pair(name, dtype):
    x = np.linspace(-9.0, 9.0, 9001).astype(dtype)
    y, _ = run_kernel(name, x)
    exact, _ = run_pair(name, x.astype("float64"))
    np.testing.assert_allclose(y, exact, rtol=0, atol=1e-14 if dtype == "float64" else 1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_the_derivative_is_that_of_the_pair(name, dtype):
    x = np.linspace(-9.0, 9.0, 9001).astype(dtype)
    _, derivative = run_kernel(name, x)
    _, exact_derivative = run_pair(name, x.astype("float64"))
    bound = 1e-13 if dtype == "float64" else 6e-6  # the tanh form's: 1 - tanh times 3 x^3 0.04
    np.testing.assert_allclose(derivative, exact_derivative, rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_without_the_derivative_y_may_be_written_over_x(name, dtype):
    x = np.linspace(-9.0, 9.0, 9001).astype(dtype)
    y, _ = run_kernel(name, x)
    rows = x[None].copy()
    ACTIVATIONS[name](rows, np.zeros(len(x), dtype), rows, None)
    np.testing.assert_array_equal(rows[0], y)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_products_are_left_as_they_are_for_the_backward_pass(name):
    rows = np.random.default_rng(0).normal(size=(3, 50))
    products, b = rows.copy(), np.linspace(-1.0, 1.0, 50)
    ACTIVATIONS[name](rows, b, np.empty_like(rows), None)
    ACTIVATIONS[name](rows, b, np.empty_like(rows), np.ones_like(rows))
    np.testing.assert_array_equal(rows, products)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_the_derivative_is_multiplied_into_dy(name):
    x, dy = np.random.default_rng(0).normal(size=(2, 3, 50))
    derivative, gradient = np.ones_like(dy), dy.copy()
    ACTIVATIONS[name](x, np.zeros(50), np.empty_like(x), derivative)
    ACTIVATIONS[name](x, np.zeros(50), np.empty_like(x), gradient)
    np.testing.assert_allclose(gradient, dy * derivative, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_x_near_0(name, dtype):
    tiny = float(np.finfo(dtype).tiny)
    x = np.array([0.0, -0.0, tiny, -tiny, 1e-30, -1e-30], dtype)
    (y, derivative), (exact, exact_derivative) = run_kernel(name, x), run_pair(name, x)
    bound = 4 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(y, exact, rtol=bound, atol=tiny)
    np.testing.assert_allclose(derivative, exact_derivative, rtol=bound)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_extreme_x_gives_the_result_of_the_pair(name):
    """In float32 x^12 overflows at 1e3, and x^2 later: neither may show in the results."""
    huge = np.geomspace(20.0, 3e38, 4001).astype("float32")
    x = np.concatenate([huge, -huge])
    with np.errstate(over="ignore", invalid="ignore"):
        (y, derivative), (exact, exact_derivative) = run_kernel(name, x), run_pair(name, x)
    if name == "silu":  # -20 e^-20 is not 0 yet, as it is for the others
        np.testing.assert_allclose(y, exact, rtol=0, atol=1e-13)
    else:
        np.testing.assert_array_equal(y, exact)
    np.testing.assert_allclose(derivative, exact_derivative, rtol=0, atol=1e-7)
    if name != "gelu_tanh":  # in whose pair infinity meets 0, once x^2 overflows
        np.testing.assert_allclose(derivative, (x > 0.0) & (name != "tanh"), rtol=0, atol=1e-7)
    x = np.array([np.inf, -np.inf, np.nan, 1.0], "float32")
    with np.errstate(over="ignore", invalid="ignore"):
        y, exact = run_kernel(name, x)[0], run_pair(name, x)[0]
    np.testing.assert_allclose(y, exact, rtol=1e-6)


def test_gelu_warns_of_nothing():
    huge = np.geomspace(1e-30, 3e38, 4001).astype("float32")
    rows = np.concatenate([huge, -huge])[None]
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        bias_gelu(rows, np.zeros_like(rows[0]), np.empty_like(rows), np.ones_like(rows))
