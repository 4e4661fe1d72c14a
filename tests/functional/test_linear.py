"""Linear maps: of each token, of several tokens at once, and two with a gate."""

import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 3)])
def test_every_position_is_its_own_weighted_sum(rng, leading):
    x, W, b = rng.normal(size=(*leading, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)
    by_hand = np.einsum("...i,ij->...j", x, W)
    np.testing.assert_allclose(F.linear(x, W)[0], by_hand, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(F.linear(x, W, b)[0], by_hand + b, rtol=1e-13, atol=1e-14)


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
    pairs = zip(F.conv1d_backward(dy, cache), F.linear_backward(dy, linear_cache), strict=True)
    for gradient_of_conv, gradient in pairs:
        np.testing.assert_array_equal(gradient_of_conv.reshape(gradient.shape), gradient)


def test_a_gate_of_ones_leaves_two_linear_maps(rng):
    x, up, down = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 6)), rng.normal(size=(6, 4))
    wide = 1e3 * np.ones((4, 6))
    y, _ = F.gated(np.abs(x), wide, up, down, activation="tanh")  # tanh is 1 there
    np.testing.assert_allclose(y, np.abs(x) @ up @ down, rtol=1e-12)


def test_what_does_not_fit_is_refused():
    x, W, down = np.ones((2, 4)), np.ones((4, 6)), np.ones((6, 4))
    with pytest.raises(ValueError, match=r"W_up has shape \(4, 5\); expected \(4, 6\)"):
        F.gated(x, W, W[:, :5], down)
    with pytest.raises(ValueError, match="activation is 'swish'"):
        F.gated(x, W, W, down, "swish")
