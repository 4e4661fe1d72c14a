"""MaskedTokens: the mathematics of a `MaskedLanguageModel`."""

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Seed, checks, generators
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers import ACTIVATIONS, ChosenTokens, Linear
from npformer.models.config import EncoderConfig
from npformer.models.encoder import Encoder
from npformer.models.input_embedding import InputEmbedding
from npformer.models.next_token import output_of


@drop_class_from_names
class MaskedTokens(Layer):
    """logits = E norm(f(W h + b)) + c, for the requested tokens of h = encoder(embed(x)).

    This is BERT with the head that it is trained with (Devlin et al., 2019). If `tied`, E is the
    table of the embeddings, so its gradient is a sum: of the gradients of its rows as embeddings,
    and as rows of this map. If not, E is a separate matrix. The head takes vocab_size d_model
    products for each token, often more than the encoder, so training requests the hidden tokens
    alone, by ``context.chosen``.

    Parameters
    ----------
    config : EncoderConfig
        With mixers that see both sides. It also decides the kind of norm.
    vocab_size : int
    head_bias, output_bias : bool
        Whether there is a b, and a c. ``head_bias=None``: as in `config`.
    head_activation : str, optional
        The name of f. None: the activation of `config`.
    tied : bool
        Whether E is the table of the embeddings, see `TiedOutput`.
    """

    def __init__(
        self,
        config: EncoderConfig,
        vocab_size: int,
        *,
        head_bias: bool | None = None,
        output_bias: bool = True,
        head_activation: str | None = None,
        tied: bool = True,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        checks.instance("config", config, EncoderConfig)
        if config.causal:
            raise ValueError(
                "causal is True; expected False, because a hidden token is guessed from both "
                "sides. For a model that does not look ahead take npformer.LanguageModel"
            )
        rng = generators.from_seed(seed)
        self.config = config
        self.vocab_size = checks.positive("vocab_size", vocab_size)
        self.head_bias = config.bias if head_bias is None else checks.flag("head_bias", head_bias)
        self.output_bias = checks.flag("output_bias", output_bias)
        self.head_activation = config.activation if head_activation is None else head_activation
        self.tied = checks.flag("tied", tied)
        # The encoder is made first, as in SequenceModel: the same seed means the same blocks.
        encoder = Encoder(config, seed=rng, dtype=dtype)
        self.embed = InputEmbedding(
            config, vocab_size=vocab_size, n_features=None, seed=rng, dtype=dtype
        )
        self.encoder = encoder
        self.choose = ChosenTokens()
        self.dense = Linear(
            config.d_model, config.d_model, bias=self.head_bias, seed=rng, dtype=dtype
        )
        self.activation = ACTIVATIONS.make(self.head_activation)
        self.norm = config.make_norm(dtype)
        self.output = output_of(
            self.embed,
            self.vocab_size,
            tied,
            rng,
            dtype,
            bias=output_bias,
            own_bias=output_bias,
        )
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {
            "vocab_size": self.vocab_size,
            "head_bias": self.head_bias,
            "output_bias": self.output_bias,
            "head_activation": self.head_activation,
            "tied": self.tied,
            "dtype": self.dtype,
        }

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        embedded, embed_cache = self.embed.forward(x, context)  # [batch, length, d_model]
        encoded, encoder_cache = self.encoder.forward(embedded, context)  # the same shape
        chosen, choose_cache = self.choose.forward(encoded, context)  # [n, d_model]
        mapped, dense_cache = self.dense.forward(chosen, context)
        active, activation_cache = self.activation.forward(mapped, context)
        normed, norm_cache = self.norm.forward(active, context)
        logits, output_cache = self.output.forward(normed, context)  # [n, vocab_size]
        head_caches = choose_cache, dense_cache, activation_cache, norm_cache, output_cache
        return logits, (embed_cache, encoder_cache, head_caches)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        embed_cache, encoder_cache, head_caches = cache
        choose_cache, dense_cache, activation_cache, norm_cache, output_cache = head_caches
        dnormed = self.output.backward(dy, output_cache, gradients)
        dactive = self.norm.backward(dnormed, norm_cache, gradients)
        dmapped = self.activation.backward(dactive, activation_cache, gradients)
        dchosen = self.dense.backward(dmapped, dense_cache, gradients)
        dencoded = self.choose.backward(dchosen, choose_cache, gradients)
        dembedded = self.encoder.backward(dencoded, encoder_cache, gradients)
        return self.embed.backward(dembedded, embed_cache, gradients)
