import numpy as np
import pytest

from npformer import functional as F


def cosines_and_sines(n):
    angle = 2.0 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    return np.cos(angle), np.sin(angle)


@pytest.mark.parametrize(("length", "d_model"), [(4, 6), (5, 3), (1, 4), (7, 1)])
def test_is_the_product_with_the_matrices_of_the_transform(rng, length, d_model):
    x = rng.normal(size=(2, length, d_model))
    C_seq, S_seq = cosines_and_sines(length)
    C_hid, S_hid = cosines_and_sines(d_model)

    y, _ = F.fourier_mixing(x)

    np.testing.assert_allclose(y, C_seq @ x @ C_hid - S_seq @ x @ S_hid, rtol=0, atol=1e-12)


def test_the_real_part_is_taken_once_after_both_transforms(rng):
    x = rng.normal(size=(1, 4, 6))
    twice = np.fft.fft(np.fft.fft(x, axis=-1).real, axis=-2).real
    assert np.abs(F.fourier_mixing(x)[0] - twice).max() > 0.1


def test_the_first_entry_is_the_sum_so_nothing_is_normalised(rng):
    x = rng.normal(size=(2, 5, 3))
    np.testing.assert_allclose(F.fourier_mixing(x)[0][:, 0, 0], x.sum(axis=(1, 2)), rtol=1e-12)


def test_is_its_own_transpose(rng):
    a, b = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 4))
    forward, cache = F.fourier_mixing(a)
    backward = F.fourier_mixing_backward(b, cache)
    np.testing.assert_allclose((forward * b).sum(), (a * backward).sum(), rtol=1e-12)


def test_padding_with_zeros_changes_the_tokens_before_it(rng):
    x = rng.normal(size=(1, 4, 6))
    padded = np.concatenate([x, np.zeros_like(x)], axis=1)
    y, longer = F.fourier_mixing(x)[0], F.fourier_mixing(padded)[0][:, :4]
    assert np.linalg.norm(longer - y) > 0.5 * np.linalg.norm(y)
