import numpy as np
import pytest

from npformer import functional as F


@pytest.fixture
def factors(rng):
    """R1 and R2 of two heads: max_len 6, k = 2."""
    return rng.normal(size=(2, 6, 2)), rng.normal(size=(2, 6, 2))


def test_is_the_papers_formula(rng):
    value, R = rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 4))
    weights = np.exp(R) / np.exp(R).sum(axis=-1, keepdims=True)
    y, _ = F.random_synthesizer(value, R)
    for n in range(2):
        np.testing.assert_allclose(y[n], weights @ value[n], rtol=1e-12)


def test_factorized_is_the_synthesizer_of_the_product(rng, factors):
    value, (R1, R2) = rng.normal(size=(3, 2, 5, 3)), factors
    y, _ = F.factorized_random_synthesizer(value, R1, R2)
    whole, _ = F.random_synthesizer(value, R1 @ R2.swapaxes(-1, -2))
    np.testing.assert_allclose(y, whole, rtol=1e-12)


def test_every_sequence_is_averaged_alike(rng):
    value, R = rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 4))
    y, _ = F.random_synthesizer(value, R)
    one, _ = F.random_synthesizer(2.0 * value[:1] - value[1:], R)
    np.testing.assert_allclose(one, 2.0 * y[:1] - y[1:], rtol=0, atol=1e-13)  # linear in value


@pytest.mark.parametrize("heads", [(), (2,)], ids=["one table", "heads"])
def test_a_shorter_sequence_uses_the_corner_at_the_top_left(rng, heads):
    R, R1, R2 = (rng.normal(size=(*heads, 6, n)) for n in (6, 2, 2))
    np.testing.assert_array_equal(F.random_scores(R, 4)[0], R[..., :4, :4])
    product = R1 @ R2.swapaxes(-1, -2)
    scores, _ = F.factorized_random_scores(R1, R2, 4)
    np.testing.assert_allclose(scores, product[..., :4, :4], rtol=1e-12)


def test_the_rest_of_the_table_has_no_gradient(rng):
    value, R = rng.normal(size=(3, 2, 4, 5)), rng.normal(size=(2, 6, 6))
    y, cache = F.random_synthesizer(value, R)
    _, dR = F.random_synthesizer_backward(rng.normal(size=y.shape), cache)
    inside = np.zeros((6, 6), dtype=bool)
    inside[:4, :4] = True
    np.testing.assert_array_equal(dR[:, ~inside], 0.0)
    assert np.abs(dR[:, inside]).min() > 0.0


def test_factorized_the_rest_of_the_factors_has_no_gradient(rng, factors):
    value = rng.normal(size=(3, 2, 4, 5))
    y, cache = F.factorized_random_synthesizer(value, *factors)
    _, *dfactors = F.factorized_random_synthesizer_backward(rng.normal(size=y.shape), cache)
    for gradient in dfactors:
        np.testing.assert_array_equal(gradient[:, 4:], 0.0)
        assert np.abs(gradient[:, :4]).min() > 0.0


def test_the_scores_are_no_view_of_the_table(rng):
    R = rng.normal(size=(4, 4))
    for length in (3, 4):
        scores, _ = F.random_scores(R, length)
        scores[...] = 0.0
    assert np.abs(R).min() > 0.0


@pytest.mark.parametrize("k", [1, 2, 5])
def test_factorized_scores_have_at_most_rank_k(rng, k):
    scores, _ = F.factorized_random_scores(*rng.normal(size=(2, 3, 12, k)), 12)
    assert (np.linalg.matrix_rank(scores) == k).all()


def test_a_table_collects_the_gradients_of_the_whole_batch(rng):
    value, R = rng.normal(size=(3, 4, 2)), rng.normal(size=(4, 4))
    dy = rng.normal(size=value.shape)
    _, dR = F.random_synthesizer_backward(dy, F.random_synthesizer(value, R)[1])
    alone = [
        F.random_synthesizer_backward(dy[n : n + 1], F.random_synthesizer(value[n : n + 1], R)[1])
        for n in range(3)
    ]
    np.testing.assert_allclose(dR, sum(one[1] for one in alone), rtol=0, atol=1e-13)


def test_causal_a_later_value_changes_no_earlier_result(rng, factors):
    value, R = rng.normal(size=(1, 2, 4, 3)), rng.normal(size=(2, 6, 6))
    changed = value.copy()
    changed[:, :, 2] += 1.0
    for synthesize, table in (
        (F.random_synthesizer, (R,)),
        (F.factorized_random_synthesizer, factors),
    ):
        y, _ = synthesize(value, *table, causal=True)
        other, _ = synthesize(changed, *table, causal=True)
        np.testing.assert_array_equal(other[:, :, :2], y[:, :, :2])
        assert np.abs(other[:, :, 2:] - y[:, :, 2:]).max() > 1e-3


def test_a_sequence_of_padding_alone_is_0_with_no_gradient(rng, factors):
    value, R = rng.normal(size=(2, 2, 4, 3)), rng.normal(size=(2, 6, 6))
    mask = np.array([[True] * 4, [False] * 4])[:, None, None]
    for name, table in (
        ("random_synthesizer", (R,)),
        ("factorized_random_synthesizer", factors),
    ):
        y, cache = getattr(F, name)(value, *table, mask=mask)
        dy = rng.normal(size=y.shape)
        dvalue, *dtables = getattr(F, f"{name}_backward")(dy, cache)
        for array in (y, dvalue):
            np.testing.assert_array_equal(array[1], 0.0)
            assert np.abs(array[0]).max() > 0.0
        _, alone = getattr(F, name)(value[:1], *table)
        _, *expected = getattr(F, f"{name}_backward")(dy[:1], alone)
        for gradient, other in zip(dtables, expected, strict=True):
            np.testing.assert_allclose(gradient, other, rtol=0, atol=1e-13)
