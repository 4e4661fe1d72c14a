import math
import tracemalloc

import numpy as np
import pytest

from npformer import functional as F


@pytest.fixture
def qkv(rng):
    """Query, key and value of two sequences, two heads, four tokens."""
    return tuple(rng.normal(size=(2, 2, 4, 3)) for _ in range(3))


def test_is_the_formula_token_by_token(qkv):
    query, key, value = qkv
    y, _ = F.scaled_dot_product_attention(query, key, value)
    for n, h, i in np.ndindex(2, 2, 4):
        scores = [query[n, h, i] @ key[n, h, j] / math.sqrt(3) for j in range(4)]
        weights = np.exp(scores) / np.exp(scores).sum()
        by_hand = sum(weights[j] * value[n, h, j] for j in range(4))
        np.testing.assert_allclose(y[n, h, i], by_hand, rtol=1e-12)


def test_a_score_is_the_product_of_query_and_key_over_the_root_of_their_size(rng):
    query, key = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 4, 5))
    scores, _ = F.attention_scores(query, key)
    assert scores.shape == (2, 3, 4)
    for n, i, j in np.ndindex(2, 3, 4):
        assert scores[n, i, j] == pytest.approx(query[n, i] @ key[n, j] / math.sqrt(5), rel=1e-12)


def test_scores_keep_a_variance_of_1_as_heads_grow(rng):
    for d_head in (1, 16, 256):
        scores, _ = F.attention_scores(*rng.normal(size=(2, 200, d_head)))
        assert 0.8 < scores.std() < 1.25


def test_every_query_shares_out_a_weight_of_1_over_the_keys(rng):
    query, key = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 4, 5))
    weights, _ = F.scaled_dot_product_attention(query, key, np.tile(np.eye(4), (2, 1, 1)))
    assert weights.shape == (2, 3, 4)
    assert (weights > 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)
    assert np.abs(weights.sum(axis=-2) - 1.0).max() > 0.1


def test_equal_keys_give_the_mean_of_the_values(rng):
    query, key, value = rng.normal(size=(4, 3)), np.ones((5, 3)), rng.normal(size=(5, 2))
    y, _ = F.scaled_dot_product_attention(query, key, value)
    np.testing.assert_allclose(y, np.tile(value.mean(axis=0), (4, 1)))


def test_permuting_the_tokens_permutes_the_result(rng, qkv):
    order = rng.permutation(4)
    y, _ = F.scaled_dot_product_attention(*qkv)
    permuted, _ = F.scaled_dot_product_attention(*(a[:, :, order] for a in qkv))
    np.testing.assert_allclose(permuted, y[:, :, order], rtol=1e-13)


def test_masked_keys_change_nothing(qkv):
    query, key, value = qkv
    mask = np.array([True, True, False, True])
    y, _ = F.scaled_dot_product_attention(query, key, value, mask=mask)

    other_key, other_value = key.copy(), value.copy()
    other_key[:, :, 2], other_value[:, :, 2] = 1e6, -1e6

    changed, _ = F.scaled_dot_product_attention(query, other_key, other_value, mask=mask)
    np.testing.assert_array_equal(changed, y)
    fewer, _ = F.scaled_dot_product_attention(query, key[:, :, mask], value[:, :, mask])
    np.testing.assert_allclose(fewer, y, rtol=1e-13)


def test_a_query_with_nothing_to_see_gives_0_and_gets_no_gradient(rng, qkv):
    mask = np.ones((4, 4), dtype=bool)
    mask[1] = False

    y, cache = F.scaled_dot_product_attention(*qkv, mask=mask)
    dquery, dkey, dvalue = F.scaled_dot_product_attention_backward(rng.normal(size=y.shape), cache)

    np.testing.assert_array_equal(y[:, :, 1], 0.0)
    np.testing.assert_array_equal(dquery[:, :, 1], 0.0)
    assert all(np.isfinite(g).all() for g in (y, dquery, dkey, dvalue))


def test_a_sequence_of_padding_alone_has_no_gradient_at_all(rng, qkv):
    mask = np.array([True, False])[:, None, None, None] & np.ones(4, dtype=bool)

    y, cache = F.scaled_dot_product_attention(*qkv, mask=mask)
    gradients = F.scaled_dot_product_attention_backward(rng.normal(size=y.shape), cache)

    np.testing.assert_array_equal(y[1], 0.0)
    for gradient in gradients:
        np.testing.assert_array_equal(gradient[1], 0.0)
        assert np.abs(gradient[0]).max() > 0.0


@pytest.mark.parametrize("later", [1, 2, 3])
def test_causal_a_later_token_changes_no_earlier_result(qkv, later):
    y, _ = F.scaled_dot_product_attention(*qkv, causal=True)
    changed = [a.copy() for a in qkv]
    for a in changed:
        a[:, :, later] += 5.0
    other, _ = F.scaled_dot_product_attention(*changed, causal=True)
    np.testing.assert_array_equal(other[:, :, :later], y[:, :, :later])
    assert np.abs(other[:, :, later] - y[:, :, later]).max() > 0.1


def test_causal_the_first_token_sees_itself_alone(qkv):
    y, _ = F.scaled_dot_product_attention(*qkv, causal=True)
    np.testing.assert_array_equal(y[:, :, 0], qkv[2][:, :, 0])


def test_causal_and_a_mask_hold_both(qkv):
    mask, every_key = np.array([False, True, True, True]), np.tile(np.eye(4), (2, 2, 1, 1))
    weights, _ = F.scaled_dot_product_attention(*qkv[:2], every_key, mask=mask, causal=True)
    np.testing.assert_array_equal(
        weights > 0.0, np.broadcast_to(np.tri(4, dtype=bool) & mask, weights.shape)
    )


def test_huge_scores_do_not_overflow(qkv):
    query, key, value = qkv
    y, cache = F.scaled_dot_product_attention(1e6 * query, 1e6 * key, value)
    assert np.isfinite(y).all()
    for gradient in F.scaled_dot_product_attention_backward(np.ones_like(y), cache):
        assert np.isfinite(gradient).all()


def test_heads_do_not_see_each_other(qkv):
    y, _ = F.scaled_dot_product_attention(*qkv)
    for head in range(2):
        alone, _ = F.scaled_dot_product_attention(*(a[:, head] for a in qkv))
        np.testing.assert_allclose(alone, y[:, head], rtol=1e-13)


# In blocks ----------------------------------------------------------------------------------------

SIGHTS = {
    "all pairs": {},
    "causal": {"causal": True},
    "padding": {"mask": np.arange(7) < np.array([7, 3])[:, None, None, None]},
    "padding, causal": {
        "causal": True,
        "mask": np.arange(7) < np.array([7, 0])[:, None, None, None],
    },
    "pairs": {"mask": np.random.default_rng(3).random((5, 7)) < 0.4},
    "pairs of each head": {"mask": np.random.default_rng(3).random((2, 2, 5, 7)) < 0.4},
    "keys": {"mask": np.arange(7) % 3 > 0},
}


def both_ways(attend, *qkv, **options):
    """Return y and the three gradients."""
    y, cache = getattr(F, attend)(*qkv, **options)
    dy = np.cos(np.arange(y.size)).reshape(y.shape)
    return y, *getattr(F, f"{attend}_backward")(dy.astype(y.dtype), cache)


@pytest.mark.parametrize("block", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("options", SIGHTS.values(), ids=SIGHTS)
def test_in_blocks_all_numbers_stay(rng, options, block):
    qkv = [rng.normal(size=shape) for shape in ((2, 2, 5, 3), (2, 2, 7, 3), (2, 2, 7, 4))]
    plain = both_ways("scaled_dot_product_attention", *qkv, **options)
    blocks = both_ways("blockwise_attention", *qkv, **options, block=block)
    for one, other in zip(plain, blocks, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)


def test_in_blocks_at_full_size_all_numbers_stay(rng):
    qkv = rng.normal(size=(3, 2, 600, 16))
    plain = both_ways("scaled_dot_product_attention", *qkv, causal=True)
    for one, other in zip(plain, both_ways("blockwise_attention", *qkv, causal=True), strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)


def test_in_blocks_memory_does_not_grow_with_the_square_of_the_length(rng):
    qkv = rng.normal(size=(3, 1, 4096, 16)).astype("float32")

    def peak(attend):
        tracemalloc.start()
        try:
            both_ways(attend, *qkv)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak("blockwise_attention") < peak("scaled_dot_product_attention") / 5


def test_in_blocks_the_cache_holds_no_weights(rng):
    _, cache = F.blockwise_attention(*rng.normal(size=(3, 1, 300, 4)))
    held = [part for part in cache if isinstance(part, np.ndarray)]
    assert max(array.size for array in held) == 300 * 4
