import numpy as np
import pytest

from npformer import functional as F


@pytest.fixture
def maps(rng):
    """W1 (4, 6), b1, W2 (6, 5), b2 of a single map."""
    return tuple(rng.normal(size=shape) for shape in ((4, 6), (6,), (6, 5), (5,)))


@pytest.fixture
def head_maps(rng):
    """W1 (4, 6), b1, W2 (2, 3, 5), b2 of two heads."""
    return tuple(rng.normal(size=shape) for shape in ((4, 6), (6,), (2, 3, 5), (2, 5)))


def test_is_the_papers_formula_token_by_token(rng, maps):
    W1, b1, W2, b2 = maps
    x, value = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 3))
    y, _ = F.dense_synthesizer(x, value, *maps)
    for n, i in np.ndindex(2, 5):
        row = W2.T @ np.maximum(W1.T @ x[n, i] + b1, 0.0) + b2
        weights = np.exp(row) / np.exp(row).sum()
        np.testing.assert_allclose(y[n, i], weights @ value[n], rtol=1e-12)


def test_rows_of_weights_sum_to_1(rng, maps, head_maps):
    x = rng.normal(size=(2, 4, 4))
    for each, value in ((maps, np.ones((2, 4, 1))), (head_maps, np.ones((2, 2, 4, 1)))):
        y, _ = F.dense_synthesizer(x, value, *each)
        np.testing.assert_allclose(y, 1.0)


@pytest.mark.parametrize("factorized", [False, True], ids=["whole", "factorized"])
def test_a_tokens_row_depends_on_that_token_alone(rng, maps, factorized):
    x = rng.normal(size=(1, 4, 4))
    pair, each = (
        (F.factorized_dense_scores, (*maps, *maps)) if factorized else (F.dense_scores, maps)
    )
    scores, cache = pair(x, *each, 5)
    x[:, 2] += 1.0
    changed, _ = pair(x, *each, 5)
    np.testing.assert_array_equal(changed[:, [0, 1, 3]], scores[:, [0, 1, 3]])
    assert np.abs(changed[:, 2] - scores[:, 2]).min() > 1e-6

    dscores = np.zeros_like(scores)
    dscores[:, 2] = 1.0
    dx, *_ = getattr(F, f"{pair.__name__}_backward")(dscores, cache)
    np.testing.assert_array_equal(dx[:, [0, 1, 3]], 0.0)
    assert np.abs(dx[:, 2]).max() > 0.0


def test_a_shorter_sequence_uses_the_first_columns(rng, maps):
    W1, b1, W2, b2 = maps
    x, value = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 3))
    y, cache = F.dense_synthesizer(x, value, *maps)
    cut, _ = F.dense_synthesizer(x, value, W1, b1, W2[:, :3].copy(), b2[:3].copy())
    np.testing.assert_allclose(y, cut, rtol=1e-13)

    *_, dW2, db2 = F.dense_synthesizer_backward(rng.normal(size=y.shape), cache)
    np.testing.assert_array_equal(dW2[:, 3:], 0.0)
    np.testing.assert_array_equal(db2[3:], 0.0)
    assert np.abs(dW2[:, :3]).max() > 0.0


def test_each_head_is_a_single_map_of_its_own_columns(rng, head_maps):
    W1, b1, W2, b2 = head_maps
    x = rng.normal(size=(2, 4, 4))
    scores, _ = F.dense_scores(x, *head_maps, 4)
    for head in range(2):
        columns = slice(3 * head, 3 * head + 3)
        alone, _ = F.dense_scores(x, W1[:, columns], b1[columns], W2[head], b2[head], 4)
        np.testing.assert_allclose(scores[:, head], alone, rtol=1e-12)


def test_a_batch_is_its_sequences_one_by_one(rng, maps):
    x, value = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4, 2))
    y, _ = F.dense_synthesizer(x, value, *maps)
    for n in range(3):
        alone, _ = F.dense_synthesizer(x[n], value[n], *maps)
        np.testing.assert_allclose(y[n], alone, rtol=1e-12)


def test_causal_a_later_value_changes_no_earlier_result(rng, head_maps):
    x, value = rng.normal(size=(1, 4, 4)), rng.normal(size=(1, 2, 4, 3))
    y, _ = F.dense_synthesizer(x, value, *head_maps, causal=True)
    value[:, :, 2] += 1.0
    changed, _ = F.dense_synthesizer(x, value, *head_maps, causal=True)
    np.testing.assert_array_equal(changed[:, :, :2], y[:, :, :2])
    assert np.abs(changed[:, :, 2:] - y[:, :, 2:]).max() > 1e-3


def test_a_sequence_of_padding_alone_is_0_with_no_gradient(rng, head_maps):
    x, value = rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 2, 4, 3))
    mask = np.array([[True] * 4, [False] * 4])[:, None, None]

    y, cache = F.dense_synthesizer(x, value, *head_maps, mask=mask)
    dx, dvalue, *rest = F.dense_synthesizer_backward(rng.normal(size=y.shape), cache)

    for array in (y, dx, dvalue):
        np.testing.assert_array_equal(array[1], 0.0)
        assert np.abs(array[0]).max() > 0.0
    assert all(np.isfinite(g).all() for g in rest)


# Factorized ---------------------------------------------------------------------------------------


@pytest.fixture
def two_maps(rng):
    """F with a = 3 columns and G with b = 2: rows of 6 scores."""
    return [rng.normal(size=shape) for n in (3, 2) for shape in ((4, 6), (6,), (6, n), (n,))]


@pytest.fixture
def two_head_maps(rng):
    """The same for two heads."""
    return [rng.normal(size=shape) for n in (3, 2) for shape in ((4, 6), (6,), (2, 3, n), (2, n))]


def test_factorized_score_j_is_F_at_j_mod_a_times_G_at_j_div_a(rng, two_maps):
    x = rng.normal(size=(2, 6, 4))
    short, _ = F.dense_scores(x, *two_maps[:4], 3)
    long, _ = F.dense_scores(x, *two_maps[4:], 2)
    scores, _ = F.factorized_dense_scores(x, *two_maps, 6)
    for j in range(6):
        np.testing.assert_array_equal(scores[..., j], short[..., j % 3] * long[..., j // 3])


def test_factorized_scores_are_a_tiled_row_times_a_repeated_one(rng, two_maps):
    x = rng.normal(size=(2, 5, 4))
    short, _ = F.dense_scores(x, *two_maps[:4], 3)
    long, _ = F.dense_scores(x, *two_maps[4:], 2)
    scores, _ = F.factorized_dense_scores(x, *two_maps, 5)
    by_hand = np.tile(short, (1, 1, 2)) * np.repeat(long, 3, axis=-1)
    np.testing.assert_array_equal(scores, by_hand[..., :5])


def test_factorized_by_hand_is_the_average_of_its_scores(rng, two_maps):
    x, value = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 3))
    y, _ = F.factorized_dense_synthesizer(x, value, *two_maps)
    scores, _ = F.factorized_dense_scores(x, *two_maps, 5)
    np.testing.assert_array_equal(y, F.average(scores, value)[0])


def test_factorized_with_a_single_column_of_1_is_the_dense_synthesizer(rng, maps):
    x, value = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 3))
    one = np.zeros((4, 6)), np.zeros(6), np.zeros((6, 1)), np.ones(1)
    whole, _ = F.dense_synthesizer(x, value, *maps)
    y, _ = F.factorized_dense_synthesizer(x, value, *maps, *one)
    np.testing.assert_array_equal(y, whole)


def test_factorized_columns_beyond_the_sequence_have_no_gradient(rng, two_maps):
    x, value = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 3))
    y, cache = F.factorized_dense_synthesizer(x, value, *two_maps)
    gradients = F.factorized_dense_synthesizer_backward(rng.normal(size=y.shape), cache)
    dV2, dc2 = gradients[-2:]
    np.testing.assert_array_equal(dV2[:, 1], 0.0)  # score j needs entry j div 3 of G
    assert dc2[1] == 0.0
    assert np.abs(dV2[:, 0]).max() > 0.0


def test_factorized_each_head_is_maps_of_its_own_columns(rng, two_head_maps):
    x = rng.normal(size=(2, 5, 4))
    scores, _ = F.factorized_dense_scores(x, *two_head_maps, 5)
    W1, b1, W2, b2, V1, c1, V2, c2 = two_head_maps
    for head in range(2):
        own = slice(3 * head, 3 * head + 3)
        first = W1[:, own], b1[own], W2[head], b2[head]
        second = V1[:, own], c1[own], V2[head], c2[head]
        alone, _ = F.factorized_dense_scores(x, *first, *second, 5)
        np.testing.assert_allclose(scores[:, head], alone, rtol=1e-12)


def test_factorized_causal_a_later_value_changes_no_earlier_result(rng, two_head_maps):
    x, value = rng.normal(size=(1, 4, 4)), rng.normal(size=(1, 2, 4, 3))
    y, _ = F.factorized_dense_synthesizer(x, value, *two_head_maps, causal=True)
    value[:, :, 2] += 1.0
    changed, _ = F.factorized_dense_synthesizer(x, value, *two_head_maps, causal=True)
    np.testing.assert_array_equal(changed[:, :, :2], y[:, :, :2])
    assert np.abs(changed[:, :, 2:] - y[:, :, 2:]).max() > 1e-3


def test_factorized_a_sequence_of_padding_alone_is_0_with_no_gradient(rng, two_head_maps):
    x, value = rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 2, 4, 3))
    mask = np.array([[True] * 4, [False] * 4])[:, None, None]

    y, cache = F.factorized_dense_synthesizer(x, value, *two_head_maps, mask=mask)
    dx, dvalue, *rest = F.factorized_dense_synthesizer_backward(rng.normal(size=y.shape), cache)

    for array in (y, dx, dvalue):
        np.testing.assert_array_equal(array[1], 0.0)
        assert np.abs(array[0]).max() > 0.0
    assert all(np.isfinite(g).all() for g in rest)
