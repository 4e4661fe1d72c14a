"""Re(F_seq x F_hidden) from half of the transform: the other half is its mirror image.

A few short sequences are multiplied by the matrices of cosines and sines: a transform calls several
functions before it computes anything, and takes longer than these products.

Without this a training step takes 2 % longer on S, 1 % on M, 2 % on X (`python -m benchmarks
parts`).
"""

from functools import lru_cache
from typing import Any

import numpy as np

from npformer.core import Array, checks, fft_module
from npformer.engine.context import EngineContext
from npformer.engine.cpu.rows import CHUNK, read_only

PRODUCTS, SHORT = 1 << 19, 128
"""Matrices are used if C x C takes at most `PRODUCTS` multiplications, and no axis is longer than
`SHORT`."""


def fourier_mixing(x: Array, *, context: EngineContext) -> tuple[Array, Any]:
    """Replaces `functional.fourier_mixing`.

    For real x the transform at (-l, -k) is the complex conjugate of that at (l, k), so their real
    parts are equal: `rfft` computes the rows up to length / 2, and the rest is copied from there,
    rows and columns in reverse.
    """
    checks.floating(x=x)
    if x.ndim < 2 or x.size == 0:
        checks.shape("x", x, (None, "length", "d_model"))
        checks.filled("x", x, "An empty array has no transform")
    length, d = x.shape[-2:]
    if max(length, d) <= SHORT and x.size * (length + d) <= PRODUCTS:
        token_matrix, feature_matrices = matrices(length, d, x.dtype)
        products = x[..., None, :, :] @ feature_matrices  # x C, and below it x S
        stacked = products.reshape(*x.shape[:-2], 2 * length, d)
        return token_matrix @ stacked, context  # C x C - S x S
    fft = fft_module(x)
    y = context.empty(x.shape, x)
    sequences, mixed = x.reshape(-1, length, d), y.reshape(-1, length, d)
    half = length // 2 + 1
    at_once = max(1, CHUNK // max(length * d, 1))
    for start in range(0, len(sequences), at_once):
        chunk = slice(start, start + at_once)
        spectrum = fft.rfft(sequences[chunk], axis=-2)  # [.., half, d]
        real = fft.fft(spectrum, axis=-1, overwrite_x=True).real
        out = mixed[chunk]
        out[:, :half] = real
        mirror = real[:, (length - 1) // 2 : 0 : -1]  # rows length - l for l from `half` on
        out[:, half:, :1] = mirror[..., :1]
        out[:, half:, 1:] = mirror[..., :0:-1]
    return y, context


@lru_cache(maxsize=16)
def matrices(length: int, d: int, dtype: Any) -> tuple[Array, Array]:
    """Return read-only [C, -S] for the axis of tokens, and C and S for the axis of features."""
    token_transform = np.fft.fft(np.eye(length))  # C - iS
    feature_transform = np.fft.fft(np.eye(d))
    token_matrix = np.concatenate((token_transform.real, token_transform.imag), axis=1)
    feature_matrices = np.stack((feature_transform.real, -feature_transform.imag))
    return read_only(token_matrix.astype(dtype)), read_only(feature_matrices.astype(dtype))


def fourier_mixing_backward(dy: Array, cache: Any) -> Array:
    """Replaces `functional.fourier_mixing_backward`: the same transform of dy."""
    dx, _ = fourier_mixing(dy, context=cache)
    return dx
