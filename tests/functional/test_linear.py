import numpy as np

from npformer import functional as F


def test_every_position_is_its_own_weighted_sum(rng):
    x, W, b = rng.normal(size=(2, 3, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)

    y, _ = F.linear(x, W, b)

    for row in np.ndindex(2, 3):
        for j in range(4):
            by_hand = sum(x[row][i] * W[i, j] for i in range(5)) + b[j]
            np.testing.assert_allclose(y[row][j], by_hand, rtol=1e-13)


def test_takes_any_number_of_leading_axes(rng):
    W = rng.normal(size=(5, 4))
    for leading in ((), (3,), (2, 3), (2, 1, 3)):
        x = rng.normal(size=(*leading, 5))
        y, cache = F.linear(x, W)
        dx, _ = F.linear_backward(np.ones_like(y), cache)
        assert y.shape == (*leading, 4)
        assert dx.shape == x.shape


def test_without_a_bias_there_is_no_gradient_for_one(rng):
    y, cache = F.linear(rng.normal(size=(3, 5)), rng.normal(size=(5, 4)))
    assert len(F.linear_backward(y, cache)) == 2


def test_gradients_are_sums_over_the_batch_not_means(rng):
    x, W, b = rng.normal(size=(3, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)
    dy = rng.normal(size=(3, 4))
    _, cache = F.linear(x, W, b)
    _, cache_of_two = F.linear(np.concatenate([x, x]), W, b)

    _, dW, db = F.linear_backward(dy, cache)
    _, dW_of_two, db_of_two = F.linear_backward(np.concatenate([dy, dy]), cache_of_two)

    np.testing.assert_allclose(dW_of_two, 2 * dW, rtol=1e-13)
    np.testing.assert_allclose(db_of_two, 2 * db, rtol=1e-13)
