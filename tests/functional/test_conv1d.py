import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize(
    ("kernel", "padding"),
    [*((n, "same") for n in (1, 2, 3, 4, 7)), *((n, "valid") for n in (1, 2, 3, 5))],
)
def test_is_the_correlation_of_x_with_the_odd_zero_behind(rng, kernel, padding):
    x, W, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(kernel, 3, 4)), rng.normal(size=4)
    zeros = ((kernel - 1) // 2, kernel // 2) if padding == "same" else (0, 0)
    padded = np.pad(x, ((0, 0), zeros, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=1)
    expected = np.einsum("ntik,kio->nto", windows, W) + b
    y, _ = F.conv1d(x, W, b, padding=padding)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_kernel_1_is_linear_bit_for_bit(rng, padding):
    x, W, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)
    y, cache = F.conv1d(x, W[None], b, padding=padding)
    expected, linear_cache = F.linear(x, W, b)
    np.testing.assert_array_equal(y, expected)

    dy = rng.normal(size=y.shape)
    both = zip(F.conv1d_backward(dy, cache), F.linear_backward(dy, linear_cache), strict=True)
    for found, gradient in both:
        np.testing.assert_array_equal(found.reshape(gradient.shape), gradient)
