import numpy as np
from scipy.special import ndtr

from npformer import functional as F
from tests.in_turn import separately


@separately(
    ("relu", [-2.0, -0.0, 0.0, 0.5], [0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 0.0, 1.0]),
    ("sigmoid", [-1000.0, 0.0, 1000.0], [0.0, 0.5, 1.0], [0.0, 0.25, 0.0]),
    ("silu", [-1000.0, 0.0, 1000.0], [0.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
    ("tanh", [-20.0, 0.0, 20.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
)
def test_values_and_slopes_at_the_middle_and_far_out(name, x, expected, slope):
    y, cache = getattr(F, name)(np.array(x))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(getattr(F, f"{name}_backward")(np.ones(len(x)), cache), slope)


@separately(
    ("sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x)), {}),
    ("silu", lambda x: x / (1.0 + np.exp(-x)), {}),
    ("gelu", lambda x: x * ndtr(x), {}),
    (
        "gelu",
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        {"approximate": "tanh"},
    ),
    ids=["sigmoid", "silu", "gelu", "gelu, tanh form"],
)
def test_is_the_published_formula(name, formula, options):
    x = np.linspace(-6.0, 6.0, 121)
    np.testing.assert_allclose(getattr(F, name)(x, **options)[0], formula(x), rtol=1e-7, atol=1e-15)
