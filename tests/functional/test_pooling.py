import numpy as np

from npformer import functional as F


def test_without_a_mask_it_is_the_mean(rng):
    x = rng.normal(size=(3, 4, 5))
    np.testing.assert_allclose(F.mean_pooling(x)[0], x.mean(axis=1), rtol=1e-14)


def test_only_kept_tokens_are_summed_and_counted(rng, padding):
    x = rng.normal(size=(3, 4, 5))
    y, _ = F.mean_pooling(x, padding)
    np.testing.assert_allclose(y[0], x[0].mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(y[1], (x[1, 0] + x[1, 1]) / 2, rtol=1e-14)


def test_a_sequence_of_padding_alone_is_0_with_no_gradient(rng, padding):
    y, cache = F.mean_pooling(rng.normal(size=(3, 4, 5)), padding)
    dx = F.mean_pooling_backward(rng.normal(size=(3, 5)), cache)
    np.testing.assert_array_equal(y[2], 0.0)
    np.testing.assert_array_equal(dx[2], 0.0)


def test_padding_may_hold_anything(rng, padding):
    x = rng.normal(size=(3, 4, 5))
    y, _ = F.mean_pooling(x, padding)
    x[~padding] = np.nan
    np.testing.assert_array_equal(F.mean_pooling(x, padding)[0], y)


def test_kept_tokens_share_the_gradient_equally(rng, padding):
    dy = rng.normal(size=(3, 5))
    dx = F.mean_pooling_backward(dy, F.mean_pooling(rng.normal(size=(3, 4, 5)), padding)[1])
    np.testing.assert_allclose(dx[0], np.tile(dy[0] / 4, (4, 1)), rtol=1e-14)
    np.testing.assert_allclose(dx[1, :2], np.tile(dy[1] / 2, (2, 1)), rtol=1e-14)
    np.testing.assert_array_equal(dx[1, 2:], 0.0)


def test_a_mask_that_keeps_everything_is_no_mask(rng):
    x = rng.normal(size=(3, 4, 5))
    masked, _ = F.mean_pooling(x, np.ones((3, 4), dtype=bool))
    np.testing.assert_allclose(masked, F.mean_pooling(x)[0], rtol=1e-14)
