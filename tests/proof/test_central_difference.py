"""The central difference by itself: known derivatives, corners, what it leaves."""

import numpy as np
import pytest

from npformer.proof.central_difference import STEP, Slopes, central_difference


@pytest.mark.parametrize(
    ("f", "slope"), [(np.sin, np.cos), (np.exp, np.exp), (lambda x: x**3, lambda x: 3 * x**2)]
)
def test_derivatives_along_a_direction(f, slope, rng):
    x, u, v = rng.normal(size=(3, 4, 2))
    start = x.copy()
    found = central_difference(lambda: f(x), x, u, v)
    assert found.central == pytest.approx((slope(start) * u * v).sum(), rel=1e-8)
    np.testing.assert_array_equal(x, start)
    assert central_difference(lambda: f(x), x, u, v, y=f(x)) == found


@pytest.mark.parametrize("h", [STEP, 0.25])
def test_slopes_on_the_two_sides_of_a_corner(h):
    x = np.zeros(1)
    assert central_difference(lambda: np.maximum(x, 0.0), x, 1.0, h=h) == Slopes(0.0, 1.0)


def test_the_array_is_restored_after_an_error():
    x = np.ones(2)

    def f():
        if x[0] > 1.0:
            raise ZeroDivisionError
        return x

    with pytest.raises(ZeroDivisionError):
        central_difference(f, x, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(x, 1.0)
