import numpy as np
import pytest

from npformer import functional as F


def maps(rng, *columns, heads=()):
    """Return W1 (4, 6), b1, W2 (6, n) and b2 for each n of columns; W2 (2, 3, n) of two heads."""
    shapes = []
    for n in columns:
        shape_of_W2 = (2, 3, n) if heads else (6, n)
        shapes += [(4, 6), (6,), shape_of_W2, (*heads, n)]
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("length", [5, 3], ids=["whole", "shorter: the first columns"])
def test_is_the_papers_formula_token_by_token(rng, length):
    W1, b1, W2, b2 = maps(rng, 5)
    x, value = rng.normal(size=(2, length, 4)), rng.normal(size=(2, length, 3))
    y, _ = F.dense_synthesizer(x, value, W1, b1, W2, b2)
    for n, i in np.ndindex(2, length):
        row = (W2.T @ np.maximum(W1.T @ x[n, i] + b1, 0.0) + b2)[:length]
        weights = np.exp(row) / np.exp(row).sum()
        np.testing.assert_allclose(y[n, i], weights @ value[n], rtol=1e-12)


def test_factorized_score_j_is_F_at_j_mod_a_times_G_at_j_div_a(rng):
    x, two_maps = rng.normal(size=(2, 6, 4)), maps(rng, 3, 2)
    short, _ = F.dense_scores(x, *two_maps[:4], 3)
    long, _ = F.dense_scores(x, *two_maps[4:], 2)
    scores, _ = F.factorized_dense_scores(x, *two_maps, 6)
    for j in range(6):
        np.testing.assert_array_equal(scores[..., j], short[..., j % 3] * long[..., j // 3])


@pytest.mark.parametrize("length", [5, 3])
def test_factorized_by_hand_is_the_average_of_its_scores(rng, length):
    x, value, two_maps = *rng.normal(size=(2, 2, length, 4)), maps(rng, 3, 2)
    y, _ = F.factorized_dense_synthesizer(x, value, *two_maps)
    scores, _ = F.factorized_dense_scores(x, *two_maps, length)
    np.testing.assert_array_equal(y, F.average(scores, value)[0])


@pytest.mark.parametrize(
    ("pair", "columns"), [(F.dense_scores, (5,)), (F.factorized_dense_scores, (3, 2))]
)
def test_each_head_is_maps_of_its_own_columns(rng, pair, columns):
    x, weights = rng.normal(size=(2, 4, 4)), maps(rng, *columns, heads=(2,))
    scores, _ = pair(x, *weights, 4)
    for head in range(2):
        columns_of_head = slice(3 * head, 3 * head + 3)
        alone = [a[head] if i % 4 > 1 else a[..., columns_of_head] for i, a in enumerate(weights)]
        np.testing.assert_allclose(scores[:, head], pair(x, *alone, 4)[0], rtol=1e-12)


def test_the_random_synthesizer_is_the_formula_of_the_paper(rng):
    value, R = rng.normal(size=(2, 4, 3)), rng.normal(size=(4, 4))
    weights = np.exp(R) / np.exp(R).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(F.random_synthesizer(value, R)[0], weights @ value, rtol=1e-12)


def test_the_factorized_synthesizer_is_the_random_one_of_the_product(rng):
    value = rng.normal(size=(3, 2, 5, 3))
    R1, R2 = rng.normal(size=(2, 6, 2)), rng.normal(size=(2, 6, 2))
    y, _ = F.factorized_random_synthesizer(value, R1, R2)
    expected, _ = F.random_synthesizer(value, R1 @ R2.swapaxes(-1, -2))
    np.testing.assert_allclose(y, expected, rtol=1e-12)


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
