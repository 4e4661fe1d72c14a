import numpy as np
import pytest

from npformer import functional as F


def test_is_the_papers_formula(rng):
    value, R = rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 4))
    weights = np.exp(R) / np.exp(R).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(F.random_synthesizer(value, R)[0], weights @ value, rtol=1e-12)


def test_factorized_is_the_synthesizer_of_the_product(rng):
    value, R1, R2 = (rng.normal(size=shape) for shape in ((3, 2, 5, 3), (2, 6, 2), (2, 6, 2)))
    y, _ = F.factorized_random_synthesizer(value, R1, R2)
    whole, _ = F.random_synthesizer(value, R1 @ R2.swapaxes(-1, -2))
    np.testing.assert_allclose(y, whole, rtol=1e-12)


@pytest.mark.parametrize("heads", [(), (2,)], ids=["one table", "heads"])
def test_a_shorter_sequence_uses_the_corner_at_the_top_left(rng, heads):
    R, R1, R2 = (rng.normal(size=(*heads, 6, n)) for n in (6, 2, 2))
    np.testing.assert_array_equal(F.random_scores(R, 4)[0], R[..., :4, :4])
    product = R1 @ R2.swapaxes(-1, -2)
    scores, _ = F.factorized_random_scores(R1, R2, 4)
    np.testing.assert_allclose(scores, product[..., :4, :4], rtol=1e-12)


@pytest.mark.parametrize("length", [3, 4])
def test_the_scores_are_no_view_of_the_table(rng, length):
    R = rng.normal(size=(4, 4))
    assert not np.shares_memory(F.random_scores(R, length)[0], R)
