"""NextToken: the mathematics of a `LanguageModel`."""

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Seed, checks, initializers
from npformer.layers import Linear, TiedOutput
from npformer.layers.sequential import backward_chain, forward_chain
from npformer.models.config import EncoderConfig
from npformer.models.decoder import check_causal
from npformer.models.encoder import Encoder
from npformer.models.input_embedding import InputEmbedding


class NextToken(Layer):
    """logits = output(encoder(embed(x))), with an encoder that does not look ahead.

    It is the decoder of Vaswani et al. (2017) without a memory, and so without cross-attention: as
    in GPT (Radford et al., 2018).

    Parameters
    ----------
    config : EncoderConfig
        With ``causal=True``.
    vocab_size : int
        Token ids run from 0 to vocab_size - 1.
    tied : bool
        Whether the output multiplies by the table of the embedding, see `TiedOutput`.
    """

    def __init__(
        self,
        config: EncoderConfig,
        vocab_size: int,
        *,
        tied: bool = True,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        check_causal(config)
        checks.flag("tied", tied)
        rng = initializers.generator(seed)
        self.config = config
        self.tied = tied
        encoder = Encoder(config, seed=rng, dtype=dtype)
        sizes: dict[str, Any] = {"vocab_size": vocab_size, "n_features": None}
        self.embed = InputEmbedding(config, **sizes, seed=rng, dtype=dtype)
        self.vocab_size = checks.positive("vocab_size", vocab_size)
        self.encoder = encoder
        self.output = output_of(self.embed, self.vocab_size, tied, rng, dtype)
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {"vocab_size": self.vocab_size, "tied": self.tied, "dtype": self.dtype}

    def chain(self) -> list[Layer]:
        """Return the layers in the order in which they act."""
        return [self.embed, self.encoder, self.output]

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return forward_chain(self.chain(), x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return backward_chain(self.chain(), dy, cache, gradients)


def output_of(
    embed: InputEmbedding, vocab_size: int, tied: bool, seed: Seed, dtype: str
) -> TiedOutput | Linear:
    """Return the layer that turns features into logits: of its own, or tied to an embedding."""
    if tied:
        return TiedOutput(embed.tokens)  # type: ignore[arg-type]
    d_model: int = embed.tokens.weight.shape[1]
    return Linear(d_model, vocab_size, seed=seed, dtype=dtype)
