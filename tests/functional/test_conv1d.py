import numpy as np
import pytest

from npformer import functional as F


def by_hand(x, W, b, before):
    """Four loops: y_t = sum_k x_{t + k - before} W_k + b, and nothing outside the sequence."""
    batch, length, _ = x.shape
    kernel, _, d_out = W.shape
    length_out = length if before is not None else length - kernel + 1
    y = np.zeros((batch, length_out, d_out)) + b
    for n in range(batch):
        for t in range(length_out):
            for k in range(kernel):
                s = t + k - (before or 0)
                if 0 <= s < length:
                    y[n, t] += x[n, s] @ W[k]
    return y


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 7])
def test_same_keeps_the_length_with_the_odd_zero_behind(rng, kernel):
    x, W, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(kernel, 3, 4)), rng.normal(size=4)

    y, _ = F.conv1d(x, W, b, padding="same")

    np.testing.assert_allclose(y, by_hand(x, W, b, before=(kernel - 1) // 2), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_valid_keeps_the_positions_that_see_no_edge(rng, kernel):
    x, W, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(kernel, 3, 4)), rng.normal(size=4)

    y, _ = F.conv1d(x, W, b, padding="valid")

    assert y.shape == (2, 5 - kernel + 1, 4)
    np.testing.assert_allclose(y, by_hand(x, W, b, before=None), rtol=0, atol=1e-12)


def test_one_channel_is_numpys_correlation(rng):
    x, W = rng.normal(size=9), rng.normal(size=3)

    y, _ = F.conv1d(x[None, :, None], W[:, None, None], padding="valid")

    np.testing.assert_allclose(y[0, :, 0], np.correlate(x, W, mode="valid"), rtol=1e-13)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_kernel_1_is_linear_bit_for_bit(rng, padding):
    x, W, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)
    dy = rng.normal(size=(2, 5, 4))

    y, cache = F.conv1d(x, W[None], b, padding=padding)
    linear_y, linear_cache = F.linear(x, W, b)

    np.testing.assert_array_equal(y, linear_y)
    dx, dW, db = F.conv1d_backward(dy, cache)
    linear_dx, linear_dW, linear_db = F.linear_backward(dy, linear_cache)
    np.testing.assert_array_equal(dx, linear_dx)
    np.testing.assert_array_equal(dW, linear_dW[None])
    np.testing.assert_array_equal(db, linear_db)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_backward_is_the_transpose_of_forward(rng, padding):
    x, W = rng.normal(size=(2, 6, 3)), rng.normal(size=(4, 3, 2))
    y, cache = F.conv1d(x, W, padding=padding)
    dy = rng.normal(size=y.shape)

    dx, dW = F.conv1d_backward(dy, cache)

    # Linear in x and in W: <y, dy> = <x, dx> = <W, dW>.
    np.testing.assert_allclose((x * dx).sum(), (y * dy).sum(), rtol=1e-12)
    np.testing.assert_allclose((W * dW).sum(), (y * dy).sum(), rtol=1e-12)
