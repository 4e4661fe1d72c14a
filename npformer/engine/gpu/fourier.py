"""Re(F_seq x F_hidden) from half of the transform: the other half is its mirror image."""

from typing import Any

from npformer.core import Array, checks, fft_module
from npformer.engine.context import EngineContext
from npformer.engine.gpu.source import Source, contiguous, per_row

FOURIER = Source("fourier")


def fourier_mixing(x: Array, *, context: EngineContext) -> tuple[Array, Any]:
    """Replaces `functional.fourier_mixing`.

    `rfft2` is `rfft` over the features and `fft` over the sequence in one plan of cuFFT, with
    half the memory of `fft2` and without the copy that `fft` makes for an axis that is not last.
    """
    xp = checks.floating(x=x)
    checks.shape("x", x, (None, "length", "d_model"))
    length, d = x.shape[-2:]
    sequences = contiguous(x).reshape(-1, length, d)
    spectrum = contiguous(fft_module(x).rfft2(sequences, axes=(-2, -1)))
    y = xp.empty(x.shape, dtype=x.dtype)
    FOURIER.launch(
        "fourier_mixing_real_part", per_row(len(sequences) * length, d), spectrum, y, length, d
    )
    return y, context


def fourier_mixing_backward(dy: Array, cache: Any) -> Array:
    """Replaces `functional.fourier_mixing_backward`: the same transform of dy."""
    dx, _ = fourier_mixing(dy, context=cache)
    return dx
