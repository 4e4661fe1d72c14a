"""Constant tables: sinusoidal positional encoding, and the matrix of the Fourier transform."""

import numpy as np


def sinusoids(length: int, d_model: int, *, halves: bool = False) -> np.ndarray:
    """Return the sinusoidal encoding, shape (length, d_model) (Vaswani et al., 2017, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same. `halves`: all
    sines come before the cosines, instead of alternating with them.
    """
    position = np.arange(length)[:, None]
    pair = np.arange(0, d_model, 2)
    angle = position / 10000.0 ** (pair / d_model)  # [length, ceil(d_model / 2)]
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle[:, : d_model // 2])
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1) if halves else table


def fourier_matrix(n: int) -> np.ndarray:
    """Return the n x n matrix of the Fourier transform: entry (j, k) is exp(-2 pi i j k / n)."""
    index = np.arange(n)
    # j k is taken modulo n, because large angles would lose digits.
    return np.asarray(np.exp(-2j * np.pi * ((index[:, None] * index) % n) / n))
