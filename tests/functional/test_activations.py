import math

import numpy as np
import pytest
from scipy.special import ndtr

from npformer import functional as F
from tests.normal_tails import GRID, gelu_errors


@pytest.mark.parametrize(
    ("name", "x", "expected", "slope"),
    [
        ("relu", [-2.0, -0.0, 0.0, 0.5], [0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 0.0, 1.0]),
        ("sigmoid", [-1000.0, 0.0, 1000.0], [0.0, 0.5, 1.0], [0.0, 0.25, 0.0]),
        ("silu", [-1000.0, 0.0, 1000.0], [0.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        ("tanh", [-20.0, 0.0, 20.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
    ],
)
def test_values_and_slopes_at_the_middle_and_far_out(name, x, expected, slope):
    y, cache = getattr(F, name)(np.array(x))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(getattr(F, f"{name}_backward")(np.ones(len(x)), cache), slope)


@pytest.mark.parametrize(
    ("name", "formula", "options"),
    [
        ("sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x)), {}),
        ("silu", lambda x: x / (1.0 + np.exp(-x)), {}),
        ("gelu", lambda x: x * ndtr(x), {}),
        (
            "gelu",
            lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
            {"approximate": "tanh"},
        ),
    ],
    ids=["sigmoid", "silu", "gelu", "gelu, tanh form"],
)
def test_is_the_published_formula(name, formula, options):
    x = np.linspace(-6.0, 6.0, 121)
    np.testing.assert_allclose(getattr(F, name)(x, **options)[0], formula(x), rtol=1e-7, atol=1e-15)


def test_gelu_in_float32_is_right_to_6_units_in_the_last_place_in_its_tails_as_well():
    x = GRID.astype("float32")
    y, cache = F.gelu(x)
    assert max(gelu_errors(x, y, F.gelu_backward(np.ones_like(x), cache))) < 6.0


@pytest.mark.parametrize(
    ("x", "expected", "slope"),
    [  # mpmath 1.3, 40 digits
        (-1.0, -0.1586552539314570514, -0.08331547058768629838),
        (-5.5, -1.044425935623824566e-7, -5.733472398739924803e-7),
        (-12.0, -2.131778534493214797e-32, -2.557895661674895624e-31),
        (-37.0, -2.118461352334093424e-298, -7.838298669418516243e-297),
        (2.0, 1.954499736103641586, 1.085231801078196897),
    ],
)
def test_gelu_in_float64_is_right_to_8_units_in_the_last_place(x, expected, slope):
    y, cache = F.gelu(np.array([x]))
    np.testing.assert_allclose(y, [expected], rtol=1.8e-15)
    np.testing.assert_allclose(F.gelu_backward(np.ones(1), cache), [slope], rtol=1.8e-15)


@pytest.mark.parametrize("x", [-9.0, -5.0, -0.5, 3.0])
def test_the_tanh_form_keeps_its_digits_in_the_lower_tail(x):
    u = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    phi, du = 1.0 / (1.0 + math.exp(-2.0 * u)), math.sqrt(2.0 / math.pi) * (1.0 + 0.134145 * x * x)
    y, cache = F.gelu(np.array([x], "float32"), approximate="tanh")
    bound = 3e-7 * (1.0 + 2.0 * abs(u))  # an exponential of 2 u, which is rounded
    np.testing.assert_allclose(y, [x * phi], rtol=bound)
    slope = phi + x * phi * (1.0 - phi) * 2.0 * du
    dx = F.gelu_backward(np.ones(1, "float32"), cache)
    np.testing.assert_allclose(dx, [slope], rtol=bound)


@pytest.mark.parametrize("x", [-80.0, -10.0, 10.0, 80.0])
def test_the_derivative_of_the_sigmoid_keeps_its_digits_on_both_sides(x):
    _, cache = F.sigmoid(np.array([x], "float32"))
    expected = math.exp(-abs(x)) / (1.0 + math.exp(-abs(x))) ** 2
    np.testing.assert_allclose(
        F.sigmoid_backward(np.ones(1, "float32"), cache), expected, rtol=5e-7
    )
