import numpy as np
import pytest

from npformer import functional as F


@pytest.fixture
def parts(rng):
    """Scores of a batch by head, of the heads alone, and one table for all."""
    return [rng.normal(size=shape) for shape in ((3, 2, 4, 4), (2, 4, 4), (4, 4))]


def test_equal_logits_give_the_mean_of_the_scores(parts):
    for logit in (0.0, -7.5):
        scores, _ = F.mixture_scores(np.full(3, logit), *parts)
        np.testing.assert_allclose(scores, (parts[0] + parts[1] + parts[2]) / 3.0, rtol=1e-12)


def test_shares_sum_to_1(rng, parts):
    ones = [np.ones_like(part) for part in parts]
    scores, _ = F.mixture_scores(rng.normal(size=3), *ones)
    np.testing.assert_allclose(scores, 1.0, rtol=1e-13)


@pytest.mark.parametrize("chosen", range(3))
def test_a_huge_logit_is_that_part_alone(parts, chosen):
    logits = np.zeros(3)
    logits[chosen] = 1e4
    scores, cache = F.mixture_scores(logits, *parts)
    np.testing.assert_array_equal(scores, np.broadcast_to(parts[chosen], scores.shape))
    _, *dparts = F.mixture_scores_backward(np.ones_like(scores), cache)
    assert [bool(np.abs(dpart).max() > 0.0) for dpart in dparts] == [i == chosen for i in range(3)]


def test_is_the_weighted_sum_entry_by_entry(rng, parts):
    logits = rng.normal(size=3)
    alpha = np.exp(logits) / np.exp(logits).sum()
    scores, _ = F.mixture_scores(logits, *parts)
    for n, h, i, j in np.ndindex(3, 2, 4, 4):
        by_hand = alpha @ [parts[0][n, h, i, j], parts[1][h, i, j], parts[2][i, j]]
        assert scores[n, h, i, j] == pytest.approx(by_hand, rel=1e-12)


def test_a_number_added_to_all_logits_changes_nothing(rng, parts):
    logits = rng.normal(size=3)
    scores, cache = F.mixture_scores(logits, *parts)
    np.testing.assert_allclose(F.mixture_scores(logits + 5.0, *parts)[0], scores, rtol=1e-12)
    dlogits, *_ = F.mixture_scores_backward(rng.normal(size=scores.shape), cache)
    assert abs(dlogits.sum()) < 1e-13


def test_gradients_have_the_shapes_of_the_parts(rng, parts):
    scores, cache = F.mixture_scores(rng.normal(size=3), *parts)
    dlogits, *dparts = F.mixture_scores_backward(rng.normal(size=scores.shape), cache)
    assert dlogits.shape == (3,)
    assert [d.shape for d in dparts] == [p.shape for p in parts]


def test_the_order_of_the_parts_does_not_matter(rng, parts):
    logits = rng.normal(size=3)
    scores, _ = F.mixture_scores(logits, *parts)
    other, _ = F.mixture_scores(logits[::-1].copy(), *parts[::-1])
    np.testing.assert_allclose(other, scores, rtol=1e-12)


def test_a_single_part_is_itself(parts):
    np.testing.assert_array_equal(F.mixture_scores(np.array([3.0]), parts[0])[0], parts[0])
