"""TextEncoder: embed, encode, pool. This is BERT or FNet without the layers of a task."""

from typing import Any, NamedTuple

from npformer.core import Array, Context, Gradients, Layer, Seed, checks, generators
from npformer.engine import fast
from npformer.engine.twin_classes import TABLE
from npformer.layers import Pooler
from npformer.models import Encoder, EncoderConfig, InputEmbedding
from npformer.training.storage.models import MODELS


class Encoded(NamedTuple):
    """The output of a `TextEncoder`.

    Attributes
    ----------
    hidden : array, shape (batch, length, d_model)
        One vector for each token; those of padding have no meaning.
    pooled : array, shape (batch, d_model), or None
        One vector for each sequence; None without a pooler.
    """

    hidden: Array
    pooled: Array | None


class TextEncoder(Layer):
    """Encodes token ids as vectors: one for each token, and one for the sequence.

    Its parameters have the same names as in a `SequenceClassifier` of the same configuration with
    ``pooling="pooler"``, so weights can be copied by name.

    `config`, `vocab_size`, `seed` and `dtype` are those of `SequenceClassifier`; `pooler` says
    whether there is a `Pooler` of the first token.
    """

    def __init__(
        self,
        config: EncoderConfig,
        vocab_size: int,
        *,
        pooler: bool = True,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        checks.flag("pooler", pooler)
        rng = generators.from_seed(seed)
        self.config = config
        self.vocab_size = checks.positive("vocab_size", vocab_size)
        # The encoder is made first, as in SequenceClassifier: the same seed gives the same blocks.
        encoder = Encoder(config, seed=rng, dtype=dtype)
        self.embed = InputEmbedding(
            config, vocab_size=vocab_size, n_features=None, seed=rng, dtype=dtype
        )
        self.encoder = encoder
        self.pool = Pooler(config.d_model, seed=rng, dtype=dtype) if pooler else None
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` other than the configuration and the seed."""
        pooler = self.pool is not None
        return {"vocab_size": self.vocab_size, "pooler": pooler, "dtype": self.dtype}

    def forward(self, x: Array, context: Context) -> tuple[Encoded, Any]:
        embedded, embed_cache = self.embed.forward(x, context)  # [batch, length, d_model]
        hidden, encoder_cache = self.encoder.forward(embedded, context)
        pooled = pool_cache = None
        if self.pool is not None:
            pooled, pool_cache = self.pool.forward(hidden, context)  # [batch, d_model]
        return Encoded(hidden, pooled), (embed_cache, encoder_cache, pool_cache)

    def backward(
        self, dy: tuple[Array | None, Array | None], cache: Any, gradients: Gradients
    ) -> None:
        """Add the gradients of all parameters.

        ``dy`` is (dhidden, dpooled); None for an output that the loss does not depend on.
        """
        dhidden, dpooled = dy
        embed_cache, encoder_cache, pool_cache = cache
        if dpooled is not None:
            if self.pool is None:
                raise ValueError(
                    "dpooled is given and this encoder has no pooler; expected (dhidden, None)"
                )
            # hidden is an output and also the pooler's input, so two gradients are added.
            dpool_input = self.pool.backward(dpooled, pool_cache, gradients)
            dhidden = dpool_input if dhidden is None else dhidden + dpool_input
        if dhidden is None:
            raise ValueError(
                "dhidden and dpooled are both None; expected at least one gradient to send back"
            )
        dembedded = self.encoder.backward(dhidden, encoder_cache, gradients)
        self.embed.backward(dembedded, embed_cache, gradients)

    def __call__(self, x: Array, mask: Array | None = None, types: Array | None = None) -> Encoded:
        """Return hidden and pooled vectors at evaluation: ``hidden, pooled = encoder(ids)``.

        The arguments are those of `SequenceClassifier.__call__`, with token ids.
        """
        x, mask, types = self.embed.prepare(x, mask, types)
        encoded, _ = fast(self).forward(x, Context(mask=mask, types=types, keep=False))
        return encoded


TABLE.add_container(TextEncoder, "embed", "encoder", "pool")


MODELS["TextEncoder"] = TextEncoder
