import numpy as np
import pytest

from npformer import functional as F


def test_is_the_softmax_of_the_scores_times_the_values(rng):
    scores, value = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(F.average(scores, value)[0], weights @ value, rtol=1e-12)


SHARED = [(3, 4), (1, 3, 4), (2, 3, 4), (1, 2, 3, 4), (5, 1, 3, 4), (1, 1, 3, 4)]


@pytest.mark.parametrize("shape", SHARED)
@pytest.mark.parametrize("mask", [None, np.arange(4) < np.array([4, 2, 0, 1, 3])[:, None]])
def test_scores_that_a_batch_or_heads_share_are_the_same_for_each(rng, shape, mask):
    scores, value = rng.normal(size=shape), rng.normal(size=(5, 2, 4, 6))
    mask = None if mask is None else mask[:, None, None]
    y, _ = F.average(scores, value, mask)
    repeated, _ = F.average(np.broadcast_to(scores, (5, 2, 3, 4)), value, mask)
    np.testing.assert_allclose(y, repeated, rtol=1e-13)


def test_weights_of_shared_scores_have_the_batch_of_the_mask_and_are_0_where_it_is(rng, padding):
    mask = np.broadcast_to(padding[:, None, None], (3, 2, 4, 4))
    weights, _ = F.averaging_weights(rng.normal(size=(2, 4, 4)), padding[:, None, None])
    np.testing.assert_array_equal(weights > 0.0, mask)
    np.testing.assert_allclose(weights.sum(axis=-1), mask.any(axis=-1))


def test_masked_scores_may_hold_anything(rng):
    scores, value = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    mask = np.array([True, True, False, True])
    y, _ = F.average(scores, value, mask)
    scores[:, 2] = [np.nan, np.inf, 1e300]
    np.testing.assert_array_equal(F.average(scores, value, mask)[0], y)


def test_causal_the_triangle_starts_at_the_first_pair_whatever_the_lengths(rng):
    weights, _ = F.averaging_weights(rng.normal(size=(3, 5)), causal=True)
    np.testing.assert_array_equal(weights > 0.0, np.tri(3, 5, dtype=bool))


@pytest.fixture
def parts(rng):
    """Scores of a batch by head, of the heads alone, and one table for all."""
    return [rng.normal(size=shape) for shape in ((3, 2, 4, 4), (2, 4, 4), (4, 4))]


def test_is_the_sum_weighted_by_the_softmax_of_the_logits(rng, parts):
    logits = rng.normal(size=3)
    alpha = np.exp(logits) / np.exp(logits).sum()
    expected = alpha[0] * parts[0] + alpha[1] * parts[1] + alpha[2] * parts[2]
    scores, _ = F.mixture_scores(logits, *parts)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("chosen", range(3))
def test_a_huge_logit_is_that_part_alone(parts, chosen):
    scores, _ = F.mixture_scores(1e4 * np.eye(3)[chosen], *parts)
    np.testing.assert_array_equal(scores, np.broadcast_to(parts[chosen], scores.shape))
