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
    for each in (maps, head_maps):
        weights, _ = F.dense_synthesizer_weights(x, *each)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0)


def test_a_tokens_weights_depend_on_that_token_alone(rng, maps):
    x = rng.normal(size=(1, 4, 4))
    weights, _ = F.dense_synthesizer_weights(x, *maps)
    x[:, 2] += 1.0
    changed, _ = F.dense_synthesizer_weights(x, *maps)
    np.testing.assert_array_equal(changed[:, [0, 1, 3]], weights[:, [0, 1, 3]])
    assert np.abs(changed[:, 2] - weights[:, 2]).max() > 1e-3


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
    weights, _ = F.dense_synthesizer_weights(x, *head_maps)
    for head in range(2):
        columns = slice(3 * head, 3 * head + 3)
        alone, _ = F.dense_synthesizer_weights(x, W1[:, columns], b1[columns], W2[head], b2[head])
        np.testing.assert_allclose(weights[:, head], alone, rtol=1e-12)


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
