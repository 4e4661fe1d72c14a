"""TextEncoder: embed, encode, pool. What BERT and FNet are below their heads."""

from __future__ import annotations

from typing import Any, NamedTuple

from npformer.core import Array, Context, Gradients, Layer, Seed, checks, initializers
from npformer.engine import fast
from npformer.engine.twins import TABLE, Child, Fast
from npformer.layers import Pooler
from npformer.models import Encoder, EncoderConfig, InputEmbedding


class Encoded(NamedTuple):
    """What a `TextEncoder` makes of a batch.

    Attributes
    ----------
    hidden : array, shape (batch, length, d_model)
        Each token; what stands at padding means nothing.
    pooled : array, shape (batch, d_model), or None
        Each sequence; None without a pooler.
    """

    hidden: Array
    pooled: Array | None


class TextEncoder(Layer):
    """Token ids to vectors: one for each token, and one for the sequence.

    Its parameters have the names that they have in a `SequenceClassifier` of the same configuration
    with ``pooling="pooler"``, so weights are carried over by name.

    Parameters
    ----------
    config : EncoderConfig
    vocab_size : int
        Token ids run from 0 to vocab_size - 1.
    pooler : bool
        Whether there is a `Pooler` over the first token.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
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
        if not isinstance(pooler, bool):
            raise TypeError(f"pooler is {pooler!r}; expected True or False")
        rng = initializers.generator(seed)
        self.config = config
        self.vocab_size = checks.positive("vocab_size", vocab_size)
        # The encoder is made first, as in SequenceClassifier: the same seed means the same blocks.
        encoder = Encoder(config, seed=rng, dtype=dtype)
        self.embed = InputEmbedding(
            config, vocab_size=vocab_size, n_features=None, seed=rng, dtype=dtype
        )
        self.encoder = encoder
        self.pool = Pooler(config.d_model, seed=rng, dtype=dtype) if pooler else None
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return what `__init__` was given beside the configuration and the seed."""
        return {
            "vocab_size": self.vocab_size,
            "pooler": self.pool is not None,
            "dtype": self.dtype,
        }

    def forward(self, x: Array, context: Context) -> tuple[Encoded, Any]:
        """Return hidden and pooled vectors, and what `backward` needs.

        Parameters
        ----------
        x : int array, shape (batch, length)
            Token ids, checked and on the model's backend.
        context : Context
            With mask and types.

        Returns
        -------
        encoded : Encoded
            The pair (hidden, pooled).
        cache : opaque
        """
        embedded, embed_cache = self.embed.forward(x, context)  # [batch, length, d_model]
        hidden, encoder_cache = self.encoder.forward(embedded, context)
        pooled = pool_cache = None
        if self.pool is not None:
            pooled, pool_cache = self.pool.forward(hidden, context)  # [batch, d_model]
        return Encoded(hidden, pooled), (embed_cache, encoder_cache, pool_cache)

    def backward(
        self, dy: tuple[Array | None, Array | None], cache: Any, gradients: Gradients
    ) -> None:
        """Add the parameters' gradients to `gradients`.

        Parameters
        ----------
        dy : (dhidden, dpooled)
            Gradients of the loss with respect to both outputs, in their shapes. None says that the
            loss does not look at that output.
        cache : opaque
            From `forward`.
        gradients : Gradients
            Added to, under each parameter's identity.

        Raises
        ------
        ValueError
            Both are None, or there is a dpooled and no pooler.
        """
        dhidden, dpooled = dy
        embed_cache, encoder_cache, pool_cache = cache
        if dpooled is not None:
            if self.pool is None:
                raise ValueError(
                    "dpooled is given and this encoder has no pooler; expected (dhidden, None)"
                )
            # hidden goes two ways, out of the model and into the pooler: its gradients add up
            dthrough = self.pool.backward(dpooled, pool_cache, gradients)
            dhidden = dthrough if dhidden is None else dhidden + dthrough
        if dhidden is None:
            raise ValueError(
                "dhidden and dpooled are both None; expected at least one gradient to send back"
            )
        dembedded = self.encoder.backward(dhidden, encoder_cache, gradients)
        self.embed.backward(dembedded, embed_cache, gradients)

    def __call__(self, x: Array, mask: Array | None = None, types: Array | None = None) -> Encoded:
        """Return hidden and pooled vectors at evaluation.

        Parameters
        ----------
        x : int array, shape (batch, length)
            Token ids, on the host or on the model's backend; host arrays are uploaded.
        mask : bool array, shape (batch, length), optional
            Padding: True = keep.
        types : int array, shape (batch, length), optional
            Types of the tokens, from 0 to n_token_types - 1; all 0 if not given.

        Returns
        -------
        encoded : Encoded
            The pair (hidden, pooled): ``hidden, pooled = encoder(ids)``.

        Raises
        ------
        TypeError, ValueError
            An input does not fit; the message says what came and what was expected.
        """
        x, mask = self.embed.prepare(x, mask)
        types = self.embed.prepare_types(types, x)
        encoded, _ = fast(self).forward(x, Context(mask=mask, types=types, keep=False))
        return encoded


class _FastTextEncoder(Fast, TextEncoder):
    """`TextEncoder` with fast layers in it."""

    __slots__ = ()
    embed = Child()
    encoder = Child()
    pool = Child()


TABLE.add(TextEncoder, _FastTextEncoder)
