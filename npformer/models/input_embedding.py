"""InputEmbedding: what comes before the encoder, and the checks of a model's inputs."""

from typing import Any

from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Seed,
    asarray,
    checks,
    generators,
)
from npformer.functional.embedding import check_ids
from npformer.layers import (
    Dropout,
    Embedding,
    Linear,
    Positions,
    TokenDropout,
    TokenTypes,
)
from npformer.layers.pooling import hide_padding, without_padding
from npformer.models.config import EncoderConfig


class InputEmbedding(Layer):
    """y = dropout(projection(norm(token + position + token type))), from ids or feature vectors.

    The configuration decides which of these terms and layers there are. Vaswani et al. (2017) have
    tokens, positions and dropout, BERT (Devlin et al., 2019) also token types and the norm, and
    FNet (Lee-Thorp et al., 2021) the projection too.

    Parameters
    ----------
    config : EncoderConfig
    vocab_size, n_features : int or None
        Exactly one of the two: the number of token ids, or the size of feature vectors.
    """

    def __init__(
        self,
        config: EncoderConfig,
        *,
        vocab_size: int | None,
        n_features: int | None,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        checks.instance("config", config, EncoderConfig)
        if vocab_size is not None:
            vocab_size = checks.positive("vocab_size", vocab_size)
        if n_features is not None:
            n_features = checks.positive("n_features", n_features)
        if (vocab_size is None) == (n_features is None):
            raise ValueError(
                f"vocab_size is {vocab_size} and n_features is {n_features}; expected exactly one: "
                "vocab_size for token ids (batch, length), n_features for vectors (batch, length, "
                "n_features)"
            )
        rng = generators.from_seed(seed)
        d_model = config.d_model
        self.vocab_size = vocab_size
        self.n_features = n_features
        self._dtype = dtype
        self.max_len = config.max_len
        self.n_token_types = config.n_token_types
        self.position_padding_id = config.position_padding_id if n_features is None else None
        # Scaled embeddings have variance 1, others 0.02^2, and so have positions and types.
        scaled = config.scale_embeddings and vocab_size is not None
        self.tokens: Embedding | Linear
        if vocab_size is not None:
            self.tokens = Embedding(vocab_size, d_model, scale=scaled, seed=rng, dtype=dtype)
        elif n_features is not None:
            self.tokens = Linear(n_features, d_model, seed=rng, dtype=dtype)
        rate = config.token_dropout
        self.token_dropout = TokenDropout(rate) if rate > 0.0 else None
        self.positions: Positions | None = None
        if config.adds_positions:
            self.positions = Positions(
                config.max_len,
                d_model,
                config.positions,
                std=1.0 if scaled else 0.02,
                seed=rng,
                dtype=dtype,
            )
        self.types: TokenTypes | None = None
        if config.n_token_types > 0:
            self.types = TokenTypes(
                config.n_token_types, d_model, scale=scaled, seed=rng, dtype=dtype
            )
        self.norm = config.make_norm(dtype) if config.embedding_norm else None
        self.projection: Linear | None = None
        if config.embedding_projection:
            self.projection = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.dropout = Dropout(config.dropout)

    def layers_in_use(self) -> list[Layer]:
        """Return the layers that the configuration asks for, in the order in which they act."""
        layers = (
            self.tokens,
            self.token_dropout,
            self.positions,
            self.types,
            self.norm,
            self.projection,
            self.dropout,
        )
        return [layer for layer in layers if layer is not None]

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self.position_padding_id is not None:
            self._check_positions(x, context.mask)
        x, context, mask = hide_padding(x, context)  # of vectors: ids become vectors here
        caches = []
        for layer in self.layers_in_use():
            x, cache = layer.forward(x, context)
            caches.append(cache)
        return without_padding(x, mask), (caches, mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        caches, mask = cache
        dx = without_padding(dy, mask)
        layers = self.layers_in_use()
        for layer, layer_cache in zip(reversed(layers), reversed(caches), strict=True):
            dx = layer.backward(dx, layer_cache, gradients)
        return without_padding(dx, mask)

    def prefill(self, x: Array, begin: Any, context: Context) -> Array:
        """Return y at evaluation for tokens that follow earlier ones: the first is at `begin`.

        `begin` is one number, or one for each row, (batch,).
        """
        for layer in self.layers_in_use():
            if layer is self.positions:
                x = layer.forward_from(x, begin)
            else:
                x, _ = layer.forward(x, context)
        return x

    # Checks, and moves to the model's backend ---------------------------------------------------

    def _check_positions(self, x: Array, mask: Array | None) -> None:
        """Check that no token follows a padding id, so that positions count all earlier ids."""
        follows_padding = (x == self.position_padding_id).cumsum(axis=1) > 0
        if mask is not None:
            follows_padding = follows_padding & mask
        if follows_padding.any():
            raise ValueError(
                f"x has the id {self.position_padding_id}, which is padding and has no position, "
                "at or before a token that is kept; expected padding at the ends of rows, and "
                "False there in the mask"
            )

    def prepare(
        self, x: Array, mask: Array | None = None, types: Array | None = None
    ) -> tuple[Array, Array | None, Array | None]:
        """Check x, mask and types, and upload them to the model's backend, with 0 at padding."""
        self.check(x, mask, types)
        x = asarray(x, self.backend)
        mask = None if mask is None else asarray(mask, self.backend)
        types = None if types is None else asarray(types, self.backend)
        if self.n_features is not None:
            x = without_padding(x, mask)
        return x, mask, types

    def check(self, x: Array, mask: Array | None = None, types: Array | None = None) -> None:
        """Check x, ids (batch, length) or vectors (batch, length, n_features), mask and types."""
        checks.on_host_or("x", x, self)
        if self.vocab_size is not None:
            if x.ndim != 2 or x.dtype.kind in "OUST":
                self._refuse_ids(x)
            check_ids("x", x, self.vocab_size, f"vocab_size is {self.vocab_size}")
        elif x.shape[2:] != (self.n_features,) or x.dtype.name != self._dtype:
            self._refuse_vectors(x)
        checks.at_most(x, self.max_len)
        if mask is not None:
            checks.on_host_or("mask", mask, self)
            checks.mask("mask", mask, tuple(x.shape[:2]))
        if types is not None:
            self._check_types(types, x)

    def _refuse_ids(self, x: Array) -> None:
        """Raise an error for an array that cannot hold token ids."""
        if x.dtype.kind in "OUST":
            raise TypeError(
                f"x holds texts, or rows of different lengths (its dtype is {x.dtype}); expected "
                "numbers. For texts take npformer.TextClassifier, for series of different "
                "lengths npformer.SeriesClassifier; or pad the rows and pass a mask"
            )
        checks.shape("x", x, ("batch", "length"), "This model takes token ids")

    def _refuse_vectors(self, x: Array) -> None:
        """Raise an error for an array that is not of feature vectors."""
        checks.floating(x=x)
        expected = ("batch", "length", self.n_features)
        checks.shape("x", x, expected, "This model takes feature vectors")
        raise TypeError(
            f"x has dtype {x.dtype} and the model {self._dtype}; expected one dtype. Nothing is "
            f"cast silently: write x.astype({self._dtype!r}), or build the model with "
            f"dtype={x.dtype.name!r}"
        )

    def _check_types(self, types: Array, x: Array) -> None:
        """Check the types of the tokens of x, from 0 to n_token_types - 1."""
        if self.n_token_types == 0:
            raise ValueError(
                "types is given and the model has no token types. Leave types out, or build the "
                "model with EncoderConfig(n_token_types=2)"
            )
        checks.on_host_or("types", types, self)
        checks.shape("types", types, tuple(x.shape[:2]), "One type for each token")
        check_ids("types", types, self.n_token_types, f"n_token_types is {self.n_token_types}")
