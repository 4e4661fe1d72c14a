import numpy as np

from npformer import Context, Gradients
from npformer import functional as F
from npformer.mixers import Fourier


def test_without_a_mask_it_is_the_function(rng):
    x = rng.normal(size=(2, 5, 8))
    for padding in ("refuse", "per_length", "zero"):
        np.testing.assert_array_equal(Fourier(padding)(x), F.fourier_mixing(x)[0])


def test_per_length_transforms_each_sequence_by_itself(rng):
    lengths = [4, 2, 0, 1, 2]
    mask, x = np.arange(4) < np.array(lengths)[:, None], rng.normal(size=(5, 4, 8))
    y = Fourier("per_length")(x, mask)
    for n, length in enumerate(lengths):
        if length:
            np.testing.assert_allclose(
                y[n, :length], F.fourier_mixing(x[n, :length])[0], atol=1e-12
            )
        np.testing.assert_array_equal(y[n, length:], 0.0)


def test_per_length_sends_each_gradient_back_by_itself(rng):
    lengths = [4, 2, 0, 1, 2]
    mask, dy = np.arange(4) < np.array(lengths)[:, None], rng.normal(size=(5, 4, 8))
    mixer = Fourier("per_length")
    _, cache = mixer.forward(rng.normal(size=(5, 4, 8)), Context(mask=mask))
    dx = mixer.backward(dy, cache, Gradients(mixer))
    for n, length in enumerate(lengths):
        if length:
            alone, _ = F.fourier_mixing(dy[n, :length])
            np.testing.assert_allclose(dx[n, :length], alone, atol=1e-12)
        np.testing.assert_array_equal(dx[n, length:], 0.0)


def test_zero_is_the_transform_of_zeros_and_depends_on_how_many_there_are(rng, padding):
    mixer, x = Fourier("zero"), rng.normal(size=(3, 4, 8))
    y = mixer(x, padding)
    np.testing.assert_allclose(y, F.fourier_mixing(x * padding[..., None])[0], atol=1e-12)
    alone, _ = F.fourier_mixing(x[1, :2])
    assert np.abs(y[1, :2] - alone).max() > 0.1


def test_has_no_parameters():
    assert Fourier().n_parameters() == 0
