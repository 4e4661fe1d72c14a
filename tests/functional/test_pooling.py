import numpy as np

from npformer import functional as F


def test_without_a_mask_it_is_the_mean(rng):
    x = rng.normal(size=(3, 4, 5))
    np.testing.assert_allclose(F.mean_pooling(x)[0], x.mean(axis=1), rtol=1e-14)


def test_only_kept_tokens_are_summed_and_counted_whatever_padding_holds(rng, padding):
    x = np.where(padding[..., None], rng.normal(size=(3, 4, 5)), np.nan)
    y, _ = F.mean_pooling(x, padding)
    np.testing.assert_allclose(y[:2], np.nanmean(x[:2], axis=1), rtol=1e-14)
    np.testing.assert_array_equal(y[2], 0.0)
