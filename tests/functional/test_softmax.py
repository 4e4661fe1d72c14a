import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_is_the_ratio_of_exponentials_along_its_axis(rng, axis):
    x = rng.normal(size=(3, 4, 5))
    expected = np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(F.softmax(x, axis=axis)[0], expected, rtol=1e-12)


def test_huge_scores_neither_overflow_nor_change_the_result(rng):
    x = rng.integers(-5, 5, (3, 4)).astype("float64")
    np.testing.assert_allclose(F.softmax(x + 2.0**40)[0], F.softmax(x)[0], rtol=1e-13)
    np.testing.assert_array_equal(F.softmax(np.array([0.0, 1e308]))[0], [0.0, 1.0])


@pytest.fixture
def masked_rows(rng):
    """Give rows of scores, and a mask that keeps at least one of each."""
    x, mask = rng.normal(size=(6, 5)), rng.random((6, 5)) < 0.6
    mask[:, 2] = True
    return x, mask


def test_masked_entries_are_exactly_0(masked_rows):
    x, mask = masked_rows
    y, _ = F.softmax(x, mask=mask)
    assert (y[~mask] == 0.0).all()


def test_entries_that_are_not_masked_are_their_own_softmax(masked_rows):
    x, mask = masked_rows
    y, _ = F.softmax(x, mask=mask)
    for probabilities, is_kept, scores in zip(y, mask, x, strict=True):
        np.testing.assert_allclose(probabilities[is_kept], F.softmax(scores[is_kept])[0])


HALF_MASKED = np.array([[True, False, True], [False, False, False]])
"""A row with two entries to keep, and one with none."""


def test_a_row_with_nothing_to_keep_is_0(rng):
    y, _ = F.softmax(rng.normal(size=(2, 3)), mask=HALF_MASKED)
    np.testing.assert_array_equal(y[1], 0.0)


def test_the_gradient_of_masked_entries_is_0(rng):
    _, cache = F.softmax(rng.normal(size=(2, 3)), mask=HALF_MASKED)
    dx = F.softmax_backward(rng.normal(size=(2, 3)), cache)
    assert (dx[~HALF_MASKED] == 0.0).all()
    assert np.isfinite(dx).all()


def test_masked_scores_may_hold_anything():
    x = np.array([[1.0, np.nan, 2.0, np.inf]])
    y, _ = F.softmax(x, mask=np.array([[True, False, True, False]]))
    np.testing.assert_allclose(y, [[1 / (1 + np.e), 0.0, np.e / (1 + np.e), 0.0]])


def test_a_rows_gradient_does_not_depend_on_the_batch_around_it(rng):
    x, dy = rng.normal(size=(8, 4)), rng.normal(size=(8, 4))
    dx = F.softmax_backward(dy, F.softmax(x)[1])
    np.testing.assert_array_equal(F.softmax_backward(dy[2:3], F.softmax(x[2:3])[1]), dx[2:3])
