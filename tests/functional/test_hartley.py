import numpy as np
import pytest

from npformer import functional as F

SIZES = [(4, 6), (5, 3), (1, 4), (7, 1), (12, 10)]


def matrix_of(transform, length, d_model):
    """Return the matrix of a linear map of (length, d_model)."""
    n = length * d_model
    return transform(np.eye(n).reshape(n, length, d_model))[0].reshape(n, n)


@pytest.mark.parametrize(("length", "d_model"), SIZES)
def test_is_a_sum_over_cosine_plus_sine_of_both_angles(rng, length, d_model):
    x = rng.normal(size=(2, length, d_model))
    j, k = np.arange(length), np.arange(d_model)
    angle = (
        2.0
        * np.pi
        * (
            np.multiply.outer(j, j)[:, None, :, None] / length
            + np.multiply.outer(k, k)[None, :, None, :] / d_model
        )
    )
    expected = np.einsum("jkpq,npq->njk", np.cos(angle) + np.sin(angle), x)
    np.testing.assert_allclose(F.hartley_mixing(x)[0], expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("length", "d_model"), SIZES)
def test_twice_is_x_times_the_number_of_entries(rng, length, d_model):
    x = rng.normal(size=(2, length, d_model))
    twice, _ = F.hartley_mixing(F.hartley_mixing(x)[0])
    np.testing.assert_allclose(twice, length * d_model * x, rtol=0, atol=1e-11)


def test_is_its_own_transpose(rng):
    a, b = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 4))
    forward, cache = F.hartley_mixing(a)
    backward = F.hartley_mixing_backward(b, cache)
    np.testing.assert_allclose((forward * b).sum(), (a * backward).sum(), rtol=1e-12)


def test_loses_nothing_where_fouriers_real_part_loses_half():
    assert np.linalg.matrix_rank(matrix_of(F.hartley_mixing, 12, 10)) == 120
    assert np.linalg.matrix_rank(matrix_of(F.fourier_mixing, 12, 10)) == 62


def test_is_the_real_part_minus_the_imaginary_part(rng):
    x = rng.normal(size=(2, 5, 4))
    transform = np.fft.fft2(x)
    np.testing.assert_allclose(
        F.hartley_mixing(x)[0], transform.real - transform.imag, rtol=0, atol=1e-12
    )
