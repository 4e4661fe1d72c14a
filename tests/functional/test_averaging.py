import numpy as np
import pytest

from npformer import functional as F


def test_is_the_softmax_of_the_scores_times_the_values(rng):
    scores, value = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(F.average(scores, value)[0], weights @ value, rtol=1e-12)


def test_rows_of_weights_sum_to_1_and_columns_do_not(rng):
    weights, _ = F.averaging_weights(rng.normal(size=(2, 4, 4)))
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)
    assert np.abs(weights.sum(axis=-2) - 1.0).max() > 0.1


def test_equal_scores_give_the_mean_of_the_values(rng):
    value = rng.normal(size=(2, 5, 3))
    y, _ = F.average(np.full((2, 4, 5), 7.0), value)
    np.testing.assert_allclose(y, np.repeat(value.mean(axis=1, keepdims=True), 4, axis=1))


def test_a_result_lies_among_the_values(rng):
    value = rng.normal(size=(6, 1))
    y, _ = F.average(9.0 * rng.normal(size=(50, 6)), value)
    assert value.min() <= y.min() <= y.max() <= value.max()


def test_a_number_added_to_a_row_of_scores_changes_nothing(rng):
    scores, value = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    y, cache = F.average(scores, value)
    shifted, _ = F.average(scores + np.array([[5.0], [0.0], [-3.0]]), value)
    np.testing.assert_allclose(shifted, y, rtol=1e-12)
    dscores, _ = F.average_backward(rng.normal(size=y.shape), cache)
    np.testing.assert_allclose(dscores.sum(axis=-1), 0.0, atol=1e-15)


# Scores that a batch or heads share ---------------------------------------------------------------

SHARED = [(3, 4), (1, 3, 4), (2, 3, 4), (1, 2, 3, 4), (5, 1, 3, 4), (1, 1, 3, 4)]


@pytest.mark.parametrize("shape", SHARED)
@pytest.mark.parametrize("mask", [None, np.arange(4) < np.array([4, 2, 0, 1, 3])[:, None]])
def test_shared_scores_are_the_same_scores_for_each(rng, shape, mask):
    scores, value = rng.normal(size=shape), rng.normal(size=(5, 2, 4, 6))
    mask = None if mask is None else mask[:, None, None]
    y, cache = F.average(scores, value, mask)
    repeated, repeated_cache = F.average(np.broadcast_to(scores, (5, 2, 3, 4)), value, mask)
    np.testing.assert_allclose(y, repeated, rtol=1e-13)

    dy = rng.normal(size=y.shape)
    dscores, dvalue = F.average_backward(dy, cache)
    each, dvalue_repeated = F.average_backward(dy, repeated_cache)
    assert dscores.shape == shape
    np.testing.assert_allclose(dvalue, dvalue_repeated, rtol=0, atol=1e-13)
    whole = (1,) * (4 - len(shape)) + shape
    axes = tuple(i for i, n in enumerate(whole) if n != (5, 2, 3, 4)[i])
    summed = each.sum(axis=axes, keepdims=True).reshape(shape)
    np.testing.assert_allclose(dscores, summed, rtol=0, atol=1e-13)


def test_a_batch_is_its_sequences_one_by_one(rng):
    scores, value = rng.normal(size=(2, 3, 3)), rng.normal(size=(4, 2, 3, 5))
    y, _ = F.average(scores, value)
    for n in range(4):
        np.testing.assert_allclose(F.average(scores, value[n])[0], y[n], rtol=1e-13)


def test_weights_of_shared_scores_have_the_batch_of_the_mask(rng):
    mask = np.arange(4) < np.array([4, 2, 0])[:, None]
    weights, _ = F.averaging_weights(rng.normal(size=(2, 4, 4)), mask[:, None, None])
    assert weights.shape == (3, 2, 4, 4)
    np.testing.assert_allclose(weights.sum(axis=-1)[:2], 1.0)
    np.testing.assert_array_equal(weights[1, ..., 2:], 0.0)
    np.testing.assert_array_equal(weights[2], 0.0)


# Masks --------------------------------------------------------------------------------------------


def test_masked_columns_get_exactly_no_weight(rng):
    mask = rng.random((2, 3, 4)) < 0.5
    weights, _ = F.averaging_weights(rng.normal(size=(2, 3, 4)), mask)
    np.testing.assert_array_equal(weights > 0.0, mask)


def test_masked_scores_may_hold_anything(rng):
    scores, value = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    mask = np.array([True, True, False, True])
    y, _ = F.average(scores, value, mask)
    scores[:, 2] = [np.nan, np.inf, 1e300]
    np.testing.assert_array_equal(F.average(scores, value, mask)[0], y)


def test_a_row_with_nothing_to_see_is_0_and_so_is_its_gradient(rng):
    scores, value, mask = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), np.ones((3, 4), bool)
    mask[1] = False
    y, cache = F.average(scores, value, mask)
    dscores, dvalue = F.average_backward(rng.normal(size=y.shape), cache)
    np.testing.assert_array_equal(y[1], 0.0)
    np.testing.assert_array_equal(dscores[1], 0.0)
    assert all(np.isfinite(a).all() for a in (y, dscores, dvalue))


def test_causal_and_a_mask_hold_both(rng):
    mask = np.array([False, True, True, True])
    weights, _ = F.averaging_weights(rng.normal(size=(2, 4, 4)), mask, causal=True)
    np.testing.assert_array_equal(
        weights > 0.0, np.broadcast_to(np.tri(4, dtype=bool) & mask, (2, 4, 4))
    )


def test_causal_the_triangle_starts_at_the_first_pair_whatever_the_lengths(rng):
    weights, _ = F.averaging_weights(rng.normal(size=(3, 5)), causal=True)
    np.testing.assert_array_equal(weights > 0.0, np.tri(3, 5, dtype=bool))


def test_huge_scores_do_not_overflow(rng):
    value = rng.normal(size=(4, 2))
    y, cache = F.average(1e300 * rng.normal(size=(3, 4)), value)
    assert np.isfinite(y).all()
    assert all(np.isfinite(g).all() for g in F.average_backward(np.ones_like(y), cache))
