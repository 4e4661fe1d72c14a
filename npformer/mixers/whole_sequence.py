"""Mixers that see all positions at once and cannot skip padding: Fourier, Hartley, linear."""

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
    constants,
    initializers,
    like,
)
from npformer.mixers.mixer import PADDINGS, Mixer, MixerSettings
from npformer.mixers.padding import STRATEGIES


class WholeSequenceMixer(Mixer):
    """A linear map of the whole sequence, with a choice of what to do about padding.

    Parameters
    ----------
    padding : {"refuse", "per_length", "zero"}
        "refuse": a padding mask is an error. "per_length": each sequence is mixed at its own
        length, so padding changes nothing. "zero": padding is set to 0 and mixed with the rest, so
        the result depends on how much padding there is. (The published code ignores padding.)
    """

    name = ""  # what the user calls this mixer
    dropout_follows = False

    def __init__(self, padding: str = "refuse") -> None:
        checks.choice("padding", padding, PADDINGS)
        self.padding = padding

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        _refuse_causal(settings, cls.name)
        return cls(settings.padding)

    @abstractmethod
    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return whole sequences mixed, and a cache."""

    @abstractmethod
    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Gradient of `mix`: add those of the parameters and return dx."""

    @abstractmethod
    def sequence_matrix(self, length: int, reference: Array) -> Array:
        """Return the matrix that mixes `length` tokens, on the backend of `reference`."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        strategy, _ = STRATEGIES[self.padding]
        return strategy(lambda x: self.mix(x, context), x, context.padding, self.name)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        _, strategy_backward = STRATEGIES[self.padding]
        return strategy_backward(
            lambda dy, cache: self.mix_backward(dy, cache, gradients), dy, cache
        )

    def explain(self, x: Array, context: Context) -> Array:
        batch, length = x.shape[:2]
        whole = self.sequence_matrix(length, x)
        xp = array_module(x)
        matrices = xp.broadcast_to(whole, (batch, 1, length, length)).copy()
        if context.padding is None:
            return matrices
        if self.padding == "per_length":
            for n, rows in context.padding.rows_of_length():
                matrices[rows, :, :n, :n] = self.sequence_matrix(n, x)
        kept = context.padding.mask
        return xp.where(kept[:, None, :, None] & kept[:, None, None, :], matrices, 0.0)


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


class LinearMixing(WholeSequenceMixer):
    """y = W_sequence x W_features, both trained: FNet's "Linear" encoder.

    Parameters
    ----------
    d_model, max_len : int
        Features of a token, and length of the longest sequence.
    padding : {"refuse", "per_length", "zero"}
        As in `WholeSequenceMixer`.

    Attributes
    ----------
    W_sequence : Parameter, shape (max_len, max_len)
        A shorter sequence uses its first rows and columns.
    W_features : Parameter, shape (d_model, d_model)
        Both are drawn from N(0, 1 / size), which keeps the variance of x.
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
        checks.positive("max_len", max_len)
        checks.positive("d_model", d_model)
        rng = initializers.generator(seed)

        def drawn(n: int) -> Parameter:
            matrix = initializers.draw(initializers.normal(n**-0.5), rng, (n, n), dtype)
            return Parameter(matrix, trainable=self.trained)

        self.W_sequence, self.W_features = drawn(max_len), drawn(d_model)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        _refuse_causal(settings, cls.name)
        return cls(**settings.only("d_model", "max_len", "padding"), seed=seed, dtype=dtype)

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.linear_mixing(x, self.W_sequence.value, self.W_features.value)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dW_sequence, dW_features = F.linear_mixing_backward(dy, cache)
        gradients.add(self.W_sequence, dW_sequence)
        gradients.add(self.W_features, dW_features)
        return dx

    def sequence_matrix(self, length: int, reference: Array) -> Array:
        return self.W_sequence.value[:length, :length]


class RandomMixing(LinearMixing):
    """`LinearMixing` whose matrices are not trained: FNet's "Random" encoder."""

    name = "random"
    trained = False


def _refuse_causal(settings: MixerSettings, name: str) -> None:
    if settings.causal:
        raise ValueError(
            f"causal=True with mixer {name!r}; expected False, for it sees all of a sequence at "
            "once. Use 'attention' or a synthesizer"
        )
