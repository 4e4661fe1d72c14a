"""Transformer: the mathematics of an `EncoderDecoder`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from npformer.core import Array, Context, Gradients, Seed, checks, generators
from npformer.core.inputs import TwoInputLayer
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers.state import States
from npformer.models.config import EncoderConfig
from npformer.models.decoder import Decoder, check_causal
from npformer.models.encoder import Encoder
from npformer.models.input_embedding import InputEmbedding
from npformer.models.next_token import last_kept, output_of


@drop_class_from_names
class Transformer(TwoInputLayer):
    """logits = output(decoder(embed(target), encoder(embed(source)))) (Vaswani et al., 2017).

    Row t of the logits predicts token t + 1 of the target: the decoder sees the target up to token
    t, and the whole source.

    Parameters
    ----------
    config : EncoderConfig
        The configuration of the encoder.
    source_vocab, target_vocab : int
        Token ids of each side run from 0 to one less.
    decoder : EncoderConfig or mapping, optional
        The configuration of the decoder, with ``causal=True``, or its `to_dict()`. None: `config`
        with ``causal=True``.
    tied : bool
        Whether source, target and output share one table, as in the paper (section 3.4).
    output_bias : bool
        Whether a bias is added to the logits of a shared table. A separate output always has one.
    """

    first = "source"  # the name of the embedding that `config` belongs to

    def __init__(
        self,
        config: EncoderConfig,
        source_vocab: int,
        target_vocab: int,
        *,
        decoder: EncoderConfig | Mapping[str, Any] | None = None,
        tied: bool = False,
        output_bias: bool = False,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        checks.instance("config", config, EncoderConfig)
        self.config = config
        self.decoder_config = _decoder_config(config, decoder)
        self.source_vocab = checks.positive("source_vocab", source_vocab)
        self.target_vocab = checks.positive("target_vocab", target_vocab)
        self.tied = checks.flag("tied", tied)
        self.output_bias = checks.flag("output_bias", output_bias)
        rng = generators.from_seed(seed)
        source = InputEmbedding(
            config, vocab_size=source_vocab, n_features=None, seed=rng, dtype=dtype
        )
        target = InputEmbedding(
            self.decoder_config, vocab_size=target_vocab, n_features=None, seed=rng, dtype=dtype
        )
        if tied:
            _check_tables(source, target)
            target.tokens = source.tokens
        self.source = source
        self.encoder = Encoder(config, seed=rng, dtype=dtype)
        self.target = target
        try:
            self.decoder = Decoder(
                self.decoder_config, seed=rng, dtype=dtype, d_memory=config.d_model
            )
        except ValueError as error:
            if decoder is not None:
                raise
            raise ValueError(
                f"the decoder cannot have the configuration of the encoder, made causal: {error}. "
                "Pass decoder=EncoderConfig(causal=True, ...), with a mixer that can be causal"
            ) from error
        self.output = output_of(target, self.target_vocab, tied, rng, dtype, output_bias)
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {
            "source_vocab": self.source_vocab,
            "target_vocab": self.target_vocab,
            "decoder": self.decoder_config.to_dict(),
            "tied": self.tied,
            "output_bias": self.output_bias,
            "dtype": self.dtype,
        }

    def start(self, source: Array, length: int, context: Context) -> States:
        """Return the state before the first token of each target, of up to `length` tokens.

        The sources are encoded here, once. Their padding is in ``context.padding``.
        """
        x, _ = self.source.forward(source, context)
        memory, _ = self.encoder.forward(x, context)
        return self.decoder.start_with(memory, length, context.swap())

    def next_logits(self, x: Array, states: States, context: Context) -> tuple[Array, States]:
        """Return the logits of the token that follows each row of x, and the new state.

        Parameters
        ----------
        x : int array, shape (batch, length)
            Tokens of the target that follow those of the state. Rows may end in padding.
        states : States

        Returns
        -------
        logits : array, shape (batch, target_vocab)
        states : States
        """
        x = self.target.prefill(x, states.stop, context)
        x, states = self.decoder.prefill(x, states, context)
        logits, _ = self.output.forward(last_kept(x, context), context)
        return logits[:, 0], states

    def forward(  # type: ignore[override]
        self, source: Array, target: Array, context: Context
    ) -> tuple[Array, Any]:
        target_context = context.swap()  # there the source's tokens are the memory
        x, source_cache = self.source.forward(source, context)
        memory, encoder_cache = self.encoder.forward(x, context)
        x, target_cache = self.target.forward(target, target_context)
        x, decoder_cache = self.decoder.forward(x, memory, target_context)
        logits, output_cache = self.output.forward(x, target_context)
        return logits, (source_cache, encoder_cache, target_cache, decoder_cache, output_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[None, None]:
        source_cache, encoder_cache, target_cache, decoder_cache, output_cache = cache
        dx = self.output.backward(dy, output_cache, gradients)
        dx, dmemory = self.decoder.backward(dx, decoder_cache, gradients)
        self.target.backward(dx, target_cache, gradients)
        dx = self.encoder.backward(dmemory, encoder_cache, gradients)
        self.source.backward(dx, source_cache, gradients)
        return None, None


def _decoder_config(
    config: EncoderConfig, decoder: EncoderConfig | Mapping[str, Any] | None
) -> EncoderConfig:
    """Return the configuration of the decoder."""
    if decoder is None:
        return replace(config, causal=True)
    if isinstance(decoder, Mapping):
        decoder = EncoderConfig.from_dict(decoder)
    checks.instance("decoder", decoder, EncoderConfig)
    check_causal(decoder)
    return decoder


def _check_tables(source: InputEmbedding, target: InputEmbedding) -> None:
    """Check that both sides can have one table."""
    source_vocab, d_model = source.tokens.weight.shape
    target_vocab, d_decoder = target.tokens.weight.shape
    if (source_vocab, d_model) != (target_vocab, d_decoder):
        raise ValueError(
            f"tied is True, source_vocab and d_model are {source_vocab} and {d_model}, "
            f"target_vocab and the decoder's d_model {target_vocab} and {d_decoder}; expected the "
            "same, because source, target and output share one table"
        )
