"""Fourier, Hartley and learned matrices: maps of whole sequences."""

import numpy as np
import pytest

from npformer import functional as F


def cosines_and_sines(n):
    angle = 2.0 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    return np.cos(angle), np.sin(angle)


@pytest.mark.parametrize(("length", "d_model"), [(4, 6), (5, 3), (1, 4), (7, 1), (12, 10)])
def test_fourier_and_hartley_are_products_with_cosines_and_sines(rng, length, d_model):
    x = rng.normal(size=(2, length, d_model))
    (C, S), (C_hidden, S_hidden) = cosines_and_sines(length), cosines_and_sines(d_model)
    real = C @ x @ C_hidden - S @ x @ S_hidden
    imaginary = -(S @ x @ C_hidden + C @ x @ S_hidden)
    np.testing.assert_allclose(F.fourier_mixing(x)[0], real, rtol=0, atol=1e-12)
    np.testing.assert_allclose(F.hartley_mixing(x)[0], real - imaginary, rtol=0, atol=1e-11)


@pytest.mark.parametrize("length", [5, 3], ids=["whole", "corner at the top left"])
def test_linear_mixing_is_a_matrix_on_either_side_of_each_sequence(rng, length):
    x, W, V = rng.normal(size=(3, length, 4)), rng.normal(size=(5, 5)), rng.normal(size=(4, 4))
    y, _ = F.linear_mixing(x, W, V)
    for n in range(3):
        np.testing.assert_allclose(y[n], W[:length, :length] @ x[n] @ V, rtol=0, atol=1e-12)
