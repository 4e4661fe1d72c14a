import numpy as np

from npformer import functional as F


def test_the_mean_is_that_of_kept_tokens_whatever_padding_holds(rng, padding):
    x = rng.normal(size=(3, 4, 5))
    np.testing.assert_allclose(F.mean_pooling(x)[0], x.mean(axis=1), rtol=1e-14)
    x = np.where(padding[..., None], rng.normal(size=(3, 4, 5)), np.nan)
    y, _ = F.mean_pooling(x, padding)
    np.testing.assert_allclose(y[:2], np.nanmean(x[:2], axis=1), rtol=1e-14)
    np.testing.assert_array_equal(y[2], 0.0)


def test_max_pooling_takes_the_largest_of_each_feature_that_is_kept(rng, padding):
    x = rng.normal(size=(3, 4, 5))
    np.testing.assert_array_equal(F.max_pooling(x)[0], x.max(axis=1))
    holes = np.where(padding[..., None], x, np.nan)
    y, _ = F.max_pooling(holes, padding)
    np.testing.assert_array_equal(y[:2], np.nanmax(holes[:2], axis=1))
    np.testing.assert_array_equal(y[2], 0.0)


def test_the_first_of_equals_gets_the_whole_gradient(padding):
    _, cache = F.max_pooling(np.ones((3, 4, 2)), padding)
    dx = F.max_pooling_backward(np.full((3, 2), 5.0), cache)
    np.testing.assert_array_equal(dx[:2, 0], 5.0)
    assert dx[:2, 1:].sum() == 0.0


def test_padding_gets_no_gradient_of_a_maximum(padding):
    _, cache = F.max_pooling(np.ones((3, 4, 2)), padding)
    dx = F.max_pooling_backward(np.full((3, 2), 5.0), cache)
    assert (dx[2] == 0.0).all()


def test_nan_in_a_token_is_not_hidden():
    assert np.isnan(F.max_pooling(np.array([[[1.0], [np.nan], [2.0]]]))[0]).all()
