import numpy as np

from npformer import functional as F


def test_splitting_heads_is_a_view_and_merging_undoes_it(rng):
    x = rng.normal(size=(2, 5, 6))
    heads = F.split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 2)
    assert np.shares_memory(heads, x)
    np.testing.assert_array_equal(heads[0, 1], x[0, :, 2:4])
    np.testing.assert_array_equal(F.merge_heads(heads), x)
