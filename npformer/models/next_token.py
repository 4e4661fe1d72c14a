"""NextToken: the mathematics of a `LanguageModel`."""

from typing import Any

from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Seed,
    array_module,
    checks,
    generators,
)
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers import Linear, TiedOutput
from npformer.layers.state import States
from npformer.models.config import EncoderConfig
from npformer.models.decoder import check_causal
from npformer.models.encoder import Encoder
from npformer.models.input_embedding import InputEmbedding


@drop_class_from_names
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
        rng = generators.from_seed(seed)
        self.config = config
        self.tied = checks.flag("tied", tied)
        encoder = Encoder(config, seed=rng, dtype=dtype)
        self.embed = InputEmbedding(
            config, vocab_size=vocab_size, n_features=None, seed=rng, dtype=dtype
        )
        self.vocab_size = checks.positive("vocab_size", vocab_size)
        self.encoder = encoder
        self.output = output_of(self.embed, self.vocab_size, tied, rng, dtype, own_bias=config.bias)
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {"vocab_size": self.vocab_size, "tied": self.tied, "dtype": self.dtype}

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        embedded, embed_cache = self.embed.forward(x, context)  # [batch, length, d_model]
        encoded, encoder_cache = self.encoder.forward(embedded, context)  # the same shape
        logits, output_cache = self.output.forward(encoded, context)  # [batch, length, vocab_size]
        return logits, (embed_cache, encoder_cache, output_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        embed_cache, encoder_cache, output_cache = cache
        dencoded = self.output.backward(dy, output_cache, gradients)
        dembedded = self.encoder.backward(dencoded, encoder_cache, gradients)
        return self.embed.backward(dembedded, embed_cache, gradients)

    def start(self, batch: int, length: int) -> States:
        """Return the state before the first token of each sequence, of up to `length` tokens."""
        return self.encoder.start(batch, length)

    def next_logits(self, x: Array, states: States, context: Context) -> tuple[Array, States]:
        """Return the logits of the token that follows each row of x, and the new state.

        Parameters
        ----------
        x : int array, shape (batch, length)
            Tokens that follow those of the state. Rows may end in padding, see ``context.mask``.
        states : States

        Returns
        -------
        logits : array, shape (batch, vocab_size)
        states : States
        """
        x = self.embed.prefill(x, states.stop, context)
        x, states = self.encoder.prefill(x, states, context)
        logits, _ = self.output.forward(last_kept(x, context), context)
        return logits[:, 0], states

    def state_bytes(self, length: int) -> int:
        """Return how many bytes the state of one sequence takes, for up to `length` tokens."""
        return int(self.start(1, length).nbytes)


def last_kept(x: Array, context: Context) -> Array:
    """Return the last token of each row that is not padding, (batch, 1, d_model)."""
    if context.mask is None:
        return x[:, -1:]
    xp = array_module(x)
    last = xp.maximum(context.mask.sum(axis=1) - 1, 0)
    return x[xp.arange(len(x)), last][:, None]


def output_of(
    embed: InputEmbedding,
    vocab_size: int,
    tied: bool,
    seed: Seed,
    dtype: str,
    bias: bool = False,
    own_bias: bool = True,
) -> TiedOutput | Linear:
    """Return the layer from features to logits, with the embedding's table if `tied`.

    `bias` is the option of the tied layer, `own_bias` that of the linear layer.
    """
    if tied:
        return TiedOutput(embed.tokens, bias)  # type: ignore[arg-type]
    d_model: int = embed.tokens.weight.shape[1]
    return Linear(d_model, vocab_size, bias=own_bias, seed=seed, dtype=dtype)
