"""Mixers that see every position at once and cannot skip padding: Fourier, Hartley, linear."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Parameter,
    Seed,
    array_module,
    checks,
    initializers,
    like,
)
from npformer.mixers.mixer import PADDINGS, Mixer, MixerSettings
from npformer.mixers.padding import WAYS_ROUND_PADDING


class WholeSequenceMixer(Mixer):
    """A linear map of the whole sequence, with a choice of what to do about padding.

    Parameters
    ----------
    padding : {"refuse", "per_length", "zero"}
        "refuse": a padding mask is an error. "per_length": each sequence is mixed at its own
        length, so padding changes nothing. "zero": padding is set to 0 and mixed with the rest;
        close to the published code, which ignores padding, and the result then depends on how much
        of it there is.

    Attributes
    ----------
    name : str
        What the user calls this mixer.

    Notes
    -----
    The paper has no dropout between the mixing and the residual connection.
    """

    name = ""
    dropout_follows = False

    def __init__(self, padding: str = "refuse") -> None:
        checks.choice("padding", padding, PADDINGS)
        self.padding = padding

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        if settings.causal:
            raise ValueError(
                f"causal=True with mixer {cls.name!r}; expected False, for it sees all of a "
                "sequence at once. Use 'attention' or a synthesizer"
            )
        return cls._build(settings, seed, dtype)

    @classmethod
    def _build(cls, settings: MixerSettings, seed: Seed, dtype: str) -> Self:
        return cls(settings.padding)

    @abstractmethod
    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the whole sequences, mixed, and a cache."""

    @abstractmethod
    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Add the parameters' gradients and return x's."""

    @abstractmethod
    def sequence_matrix(self, length: int, near: Array) -> Array:
        """Return the matrix that mixes `length` tokens."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        way_round, _ = WAYS_ROUND_PADDING[self.padding]

        def mix(x: Array) -> tuple[Array, Any]:
            return self.mix(x, context)

        return way_round(mix, x, context.padding, self.name)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        _, way_back = WAYS_ROUND_PADDING[self.padding]

        def mix_backward(dy: Array, cache: Any) -> Array:
            return self.mix_backward(dy, cache, gradients)

        return way_back(mix_backward, dy, cache)

    def explain(self, x: Array, context: Context) -> Array:
        batch, length = x.shape[:2]
        whole = self.sequence_matrix(length, near=x)
        xp = array_module(x)
        matrices = xp.broadcast_to(whole, (batch, 1, length, length)).copy()
        if context.padding is None:
            return matrices
        if self.padding == "per_length":
            for n, rows in context.padding.rows_of_length():
                matrices[rows, :, :n, :n] = self.sequence_matrix(n, near=x)
        kept = context.padding.mask
        return xp.where(kept[:, None, :, None] & kept[:, None, None, :], matrices, 0.0)


class Fourier(WholeSequenceMixer):
    """y = Re(F_seq x F_hidden); no parameters (Lee-Thorp et al., 2021, arXiv 2105.03824).

    Parameters
    ----------
    padding : {"refuse", "per_length", "zero"}
        See `WholeSequenceMixer`.
    """

    name = "fourier"

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.fourier_mixing(x)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.fourier_mixing_backward(dy, cache)

    def sequence_matrix(self, length: int, near: Array) -> Array:
        return _fourier_matrix(length, near)


class Hartley(WholeSequenceMixer):
    """y = Re(F x) - Im(F x), F the 2-D Fourier transform: full rank, no parameters.

    Parameters
    ----------
    padding : {"refuse", "per_length", "zero"}
        See `WholeSequenceMixer`.
    """

    name = "hartley"

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.hartley_mixing(x)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.hartley_mixing_backward(dy, cache)

    def sequence_matrix(self, length: int, near: Array) -> Array:
        return _fourier_matrix(length, near)


class LinearMixing(WholeSequenceMixer):
    """y = W_sequence x W_features, both trained: FNet's "Linear" encoder.

    Parameters
    ----------
    d_model : int
        Features of a token.
    max_len : int
        The longest sequence; a shorter one uses the first rows and columns of W_sequence.
    padding : {"refuse", "per_length", "zero"}
        See `WholeSequenceMixer`.
    seed : int or numpy.random.Generator
        Draws both matrices from N(0, 1 / size), which keeps the variance of what they mix.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    W_sequence : Parameter, shape (max_len, max_len)
    W_features : Parameter, shape (d_model, d_model)
    """

    name = "linear"
    trained = True

    def __init__(
        self,
        d_model: int,
        max_len: int = 128,
        padding: str = "refuse",
        *,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        super().__init__(padding)
        rng = initializers.generator(seed)
        self.W_sequence, self.W_features = (
            Parameter(
                initializers.draw(
                    initializers.normal(checks.positive(name, n) ** -0.5), rng, (n, n), dtype
                ),
                trainable=self.trained,
            )
            for name, n in (("max_len", max_len), ("d_model", d_model))
        )

    @classmethod
    def _build(cls, settings: MixerSettings, seed: Seed, dtype: str) -> Self:
        return cls(settings.d_model, settings.max_len, settings.padding, seed=seed, dtype=dtype)

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.linear_mixing(x, self.W_sequence.value, self.W_features.value)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dW_sequence, dW_features = F.linear_mixing_backward(dy, cache)
        gradients.add(self.W_sequence, dW_sequence)
        gradients.add(self.W_features, dW_features)
        return dx

    def sequence_matrix(self, length: int, near: Array) -> Array:
        return self.W_sequence.value[:length, :length]


class RandomMixing(LinearMixing):
    """y = W_sequence x W_features, both left as they were drawn: FNet's "Random" encoder.

    Parameters
    ----------
    d_model, max_len, padding, seed, dtype
        As in `LinearMixing`.
    """

    name = "random"
    trained = False


def _fourier_matrix(length: int, near: Array) -> Array:
    """Return the transform's matrix where `near` lives, in complex numbers of its precision."""
    dtype = "complex64" if near.dtype.name == "float32" else "complex128"
    return like(initializers.fourier_matrix(length).astype(dtype), near)
