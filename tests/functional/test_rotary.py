import numpy as np
import pytest

from npformer import functional as F

LAYOUTS = "halves", "neighbours"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_depend_on_the_difference_of_positions_alone(rng, layout):
    query, key = rng.normal(size=(2, 1, 8))
    at = np.arange(200)
    queries, keys = (F.rotary(np.repeat(a, 200, 0), at, layout=layout)[0] for a in (query, key))
    scores = queries @ keys.T
    for apart in (-150, -7, 0, 1, 90):
        diagonal = np.diagonal(scores, apart)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=0, atol=1e-12)
    assert np.ptp(scores[0]) > 0.1  # and they do depend on it


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_rotation_keeps_lengths(rng, layout):
    x = rng.normal(size=(2, 3, 5, 8))
    y, _ = F.rotary(x, np.arange(5), layout=layout)
    np.testing.assert_allclose(np.vecdot(y, y), np.vecdot(x, x), rtol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_position_0_is_not_rotated(rng, layout):
    x = rng.normal(size=(2, 3, 5, 8))
    y, _ = F.rotary(x, np.arange(5), layout=layout)
    np.testing.assert_array_equal(y[..., 0, :], x[..., 0, :])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_backward_pass_rotates_back(rng, layout):
    x = rng.normal(size=(2, 3, 5, 8))
    y, cache = F.rotary(x, np.arange(5), layout=layout)
    np.testing.assert_allclose(F.rotary_backward(y, cache), x, rtol=0, atol=1e-14)


def test_the_layouts_are_one_map_with_features_in_another_order(rng):
    x, order = rng.normal(size=(5, 8)), np.arange(8).reshape(2, 4).T.ravel()
    halves, _ = F.rotary(x, np.arange(5))
    neighbours, _ = F.rotary(x[:, order], np.arange(5), layout="neighbours")
    np.testing.assert_array_equal(halves[:, order], neighbours)


def test_a_turn_is_that_of_the_paper():
    x = np.array([[1.0, 0.0, 0.0, 2.0]])
    y, _ = F.rotary(x, np.array([3]), theta=100.0, layout="neighbours")
    slow = 3.0 * 100.0**-0.5
    expected = [np.cos(3.0), np.sin(3.0), -2.0 * np.sin(slow), 2.0 * np.cos(slow)]
    np.testing.assert_allclose(y[0], expected, rtol=0, atol=1e-15)


def test_float32_keeps_its_digits_at_large_positions(rng):
    x, at = rng.normal(size=(3, 64)), np.array([0, 100_000, 10_000_019])
    exact, _ = F.rotary(x, at)
    y, _ = F.rotary(x.astype("float32"), at)
    assert y.dtype.name == "float32"
    np.testing.assert_allclose(y, exact, rtol=0, atol=1e-6)


def test_each_row_may_have_positions_of_its_own(rng):
    x, at = rng.normal(size=(2, 3, 4, 6)), rng.integers(0, 50, size=(2, 1, 4))
    y, _ = F.rotary(x, at)
    for row, of_row, its_positions in zip(y, x, at[:, 0], strict=True):
        np.testing.assert_array_equal(row, F.rotary(of_row, its_positions)[0])


@pytest.mark.parametrize(
    ("x", "positions", "options", "said"),
    [
        (np.ones((2, 3)), np.arange(2), {}, "expected an even number of features"),
        (np.ones((2, 4)), np.arange(3), {}, r"positions has shape \(3,\); expected \(2,\)"),
        (np.ones((2, 4)), np.arange(2.0), {}, "positions has dtype float64; expected whole"),
        (np.ones((2, 4)), np.arange(2), {"layout": "half"}, "layout is 'half'"),
        (np.ones((2, 4)), np.arange(2), {"theta": 0.0}, "theta is 0.0"),
        (np.ones(4), np.arange(2), {}, "x has shape"),
    ],
)
def test_what_does_not_fit_is_refused(x, positions, options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        F.rotary(x, positions, **options)
