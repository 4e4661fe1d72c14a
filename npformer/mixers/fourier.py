"""Fourier and Hartley mixing: transforms without parameters."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, constants, like
from npformer.mixers.whole_sequence import WholeSequenceMixer


class Fourier(WholeSequenceMixer):
    """y = Re(F_seq x F_hidden); no parameters (Lee-Thorp et al., 2021, arXiv 2105.03824)."""

    name = "fourier"

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.fourier_mixing(x)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.fourier_mixing_backward(dy, cache)

    def sequence_matrix(self, length: int, reference: Array) -> Array:
        dtype = "complex64" if reference.dtype.name == "float32" else "complex128"
        return like(constants.fourier_matrix(length).astype(dtype), reference)


class Hartley(WholeSequenceMixer):
    """y = Re(F x) - Im(F x), F the 2-D Fourier transform: full rank, no parameters."""

    name = "hartley"

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.hartley_mixing(x)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.hartley_mixing_backward(dy, cache)

    def sequence_matrix(self, length: int, reference: Array) -> Array:
        return Fourier().sequence_matrix(length, reference)
