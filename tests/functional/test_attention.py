import math
import tracemalloc

import numpy as np
import pytest

from npformer import functional as F


def test_is_the_formula_token_by_token(rng):
    query, key, value = (rng.normal(size=(2, 2, length, 3)) for length in (3, 4, 4))
    scores, _ = F.attention_scores(query, key)
    y, _ = F.scaled_dot_product_attention(query, key, value)
    for n, h, i in np.ndindex(2, 2, 3):
        by_hand = key[n, h] @ query[n, h, i] / math.sqrt(3)
        np.testing.assert_allclose(scores[n, h, i], by_hand, rtol=1e-12)
        weights = np.exp(by_hand) / np.exp(by_hand).sum()
        np.testing.assert_allclose(y[n, h, i], weights @ value[n, h], rtol=1e-12)


@pytest.mark.parametrize("attend", [F.scaled_dot_product_attention, F.blockwise_attention])
def test_masked_keys_change_nothing(rng, attend):
    query, key, value = rng.normal(size=(3, 2, 2, 4, 3))
    mask = np.array([True, True, False, True])
    y, _ = attend(query, key, value, mask=mask)
    fewer, _ = attend(query, key[:, :, mask], value[:, :, mask])
    np.testing.assert_allclose(fewer, y, rtol=1e-13)
    key[:, :, 2], value[:, :, 2] = 1e6, -1e6
    np.testing.assert_array_equal(attend(query, key, value, mask=mask)[0], y)


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


def assert_all_numbers_stay(*qkv, block=256, **options):
    plain = both_ways("scaled_dot_product_attention", *qkv, **options)
    blocks = both_ways("blockwise_attention", *qkv, **options, block=block)
    for one, other in zip(plain, blocks, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("options", SIGHTS.values(), ids=SIGHTS)
def test_in_blocks_all_numbers_stay(rng, options, block):
    shapes = (2, 2, 5, 3), (2, 2, 7, 3), (2, 2, 7, 4)
    assert_all_numbers_stay(*(rng.normal(size=shape) for shape in shapes), block=block, **options)


def test_in_blocks_at_full_size_all_numbers_stay(rng):
    assert_all_numbers_stay(*rng.normal(size=(3, 2, 600, 16)), causal=True)


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


def test_splitting_heads_is_a_view(rng):
    x = rng.normal(size=(2, 5, 6))
    heads = F.split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 2)
    assert np.shares_memory(heads, x)
    np.testing.assert_array_equal(heads[0, 1], x[0, :, 2:4])


def test_merging_heads_undoes_splitting_them(rng):
    x = rng.normal(size=(2, 5, 6))
    np.testing.assert_array_equal(F.merge_heads(F.split_heads(x, 3)), x)
