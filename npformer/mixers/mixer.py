"""What all token mixers share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

from npformer.core import INITIALIZERS, Array, Context, Layer, Seed, checks

PADDINGS = ("refuse", "per_length", "zero")
MEMORIES = ("auto", "stored", "blocks")


@dataclass(frozen=True)
class MixerSettings:
    """What an encoder tells a mixer; each takes what it needs.

    Attributes
    ----------
    d_model : int
        Features of a token.
    n_heads : int
        Heads, in the mixers whose papers have heads.
    max_len : int
        The longest sequence.
    causal : bool
        Token i sees the tokens 0 to i only.
    padding : {"refuse", "per_length", "zero"}
        What a mixer does that cannot skip padding.
    memory : {"auto", "stored", "blocks"}
        Whether attention keeps its weights for the backward pass.
    rank : int
        k of the Factorized Random Synthesizer.
    mixture : tuple of str
        Parts of a mixture.
    initializer : str
        A name in `INITIALIZERS`: what projections are drawn from.
    """

    d_model: int
    n_heads: int = 1
    max_len: int = 128
    causal: bool = False
    padding: str = "refuse"
    memory: str = "auto"
    rank: int = 8
    mixture: tuple[str, ...] = ("attention", "random_synthesizer")
    initializer: str = "xavier_uniform"

    def __post_init__(self) -> None:
        checks.positive("d_model", self.d_model)
        checks.positive("n_heads", self.n_heads)
        checks.positive("max_len", self.max_len)
        checks.positive("rank", self.rank)
        checks.choice("padding", self.padding, PADDINGS)
        checks.choice("memory", self.memory, MEMORIES)
        INITIALIZERS.parse(self.initializer, "initializer")


class Mixer(Layer):
    """A layer in which tokens see each other: (batch, length, d_model) to the same shape.

    ``context.mask`` says which tokens are padding (True = keep). A mixer gives padding no weight
    at all, or refuses the mask unless it is told what to do about it.

    Attributes
    ----------
    dropout_follows : bool
        Whether the paper has dropout between this mixer and the residual connection.
    """

    dropout_follows: bool = True

    @classmethod
    @abstractmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        """Make this mixer for an encoder.

        Parameters
        ----------
        settings : MixerSettings
        seed : int or numpy.random.Generator
            Draws the weights.
        dtype : {"float32", "float64"}
        """

    @abstractmethod
    def explain(self, x: Array, context: Context) -> Array:
        """Return the matrices that this mixer would mix `x` with.

        Parameters
        ----------
        x : array, shape (batch, length, d_model)
            What this mixer gets.
        context : Context

        Returns
        -------
        matrices : array, shape (batch, heads, length, length)
            Entry (i, j): what token i takes from token j. For attention and synthesizers their
            weights, rows summing to 1. For Fourier and Hartley the transform over the sequence,
            complex, and for linear mixing its matrix, with one head. Rows and columns of padding
            are 0.
        """


def check_heads(d_model: int, n_heads: int) -> None:
    """Check that the heads share the features evenly."""
    checks.positive("d_model", d_model)
    checks.positive("n_heads", n_heads)
    if d_model % n_heads:
        fitting = [n for n in range(1, d_model + 1) if d_model % n == 0]
        raise ValueError(
            f"n_heads is {n_heads} and d_model is {d_model}; expected heads that divide d_model, "
            f"for each head gets d_model / n_heads features. These do: "
            f"{', '.join(map(str, fitting))}"
        )
