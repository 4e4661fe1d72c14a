import numpy as np
import pytest

from npformer import functional as F


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
