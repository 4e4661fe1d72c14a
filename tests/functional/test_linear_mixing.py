import numpy as np

from npformer import functional as F


def test_is_a_matrix_on_either_side_of_each_sequence(rng):
    x, W, V = rng.normal(size=(3, 5, 4)), rng.normal(size=(5, 5)), rng.normal(size=(4, 4))
    y, _ = F.linear_mixing(x, W, V)
    for n in range(3):
        np.testing.assert_allclose(y[n], W @ x[n] @ V, rtol=0, atol=1e-12)


def test_with_cosines_and_sines_it_is_half_of_the_fourier_transform(rng):
    x = rng.normal(size=(2, 5, 4))

    def parts(n):
        angle = 2.0 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
        return np.cos(angle), np.sin(angle)

    (C, S), (C_hidden, S_hidden) = parts(5), parts(4)
    cosines, sines = F.linear_mixing(x, C, C_hidden)[0], F.linear_mixing(x, S, S_hidden)[0]
    np.testing.assert_allclose(cosines - sines, F.fourier_mixing(x)[0], rtol=0, atol=1e-12)


def test_a_shorter_sequence_uses_the_corner_at_the_top_left(rng):
    x, W, V = rng.normal(size=(2, 3, 4)), rng.normal(size=(5, 5)), rng.normal(size=(4, 4))
    y, cache = F.linear_mixing(x, W, V)
    np.testing.assert_array_equal(y, F.linear_mixing(x, W[:3, :3].copy(), V)[0])

    _, dW, _ = F.linear_mixing_backward(rng.normal(size=y.shape), cache)
    inside = np.zeros((5, 5), dtype=bool)
    inside[:3, :3] = True
    np.testing.assert_array_equal(dW[~inside], 0.0)
    assert np.abs(dW[inside]).min() > 0.0


def test_identities_leave_x_alone(rng):
    x = rng.normal(size=(2, 5, 4))
    np.testing.assert_array_equal(F.linear_mixing(x, np.eye(6), np.eye(4))[0], x)
