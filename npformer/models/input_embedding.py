"""InputEmbedding: what stands before an encoder, and the model's edge, where inputs are checked."""

from __future__ import annotations

from typing import Any

from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Seed,
    array_module,
    asarray,
    checks,
    initializers,
)
from npformer.functional.embedding import check_ids
from npformer.layers import Dropout, Embedding, LayerNorm, Linear, Positions, TokenTypes
from npformer.models.config import EncoderConfig


class InputEmbedding(Layer):
    """Token ids or feature vectors to d_model features: y = dropout(projection(norm(sum))).

    The sum is token + position + token type; the configuration says which of these parts there are.
    Vaswani et al. (2017) have tokens, positions and dropout. BERT (Devlin et al., 2019) has token
    types and the norm too, FNet (Lee-Thorp et al., 2021) also the projection.

    Parameters
    ----------
    config : EncoderConfig
    vocab_size : int or None
        For token ids: the size of the table.
    n_features : int or None
        For feature vectors: their size. Exactly one of the two is given.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Raises
    ------
    ValueError
        Neither or both of vocab_size and n_features.
    """

    def __init__(
        self,
        config: EncoderConfig,
        *,
        vocab_size: int | None,
        n_features: int | None,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
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
        rng = initializers.generator(seed)
        d_model = config.d_model
        self.vocab_size = vocab_size
        self.n_features = n_features
        self.max_len = config.max_len
        self.n_token_types = config.n_token_types
        # Scaled embeddings have variance 1, unscaled ones 0.02^2: what is added is to match.
        scaled = config.scale_embeddings and vocab_size is not None
        self.tokens: Embedding | Linear
        if vocab_size is not None:
            self.tokens = Embedding(vocab_size, d_model, scale=scaled, seed=rng, dtype=dtype)
        elif n_features is not None:
            self.tokens = Linear(n_features, d_model, seed=rng, dtype=dtype)
        self.positions: Positions | None = None
        if config.positions != "none":
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
        self.norm: LayerNorm | None = None
        if config.embedding_norm:
            self.norm = LayerNorm(d_model, config.norm_eps, dtype=dtype)
        self.projection: Linear | None = None
        if config.embedding_projection:
            self.projection = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.dropout = Dropout(config.dropout)

    def chain(self) -> list[Layer]:
        """Return the layers that there are, in the order in which they act."""
        parts = self.tokens, self.positions, self.types, self.norm, self.projection, self.dropout
        return [part for part in parts if part is not None]

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        caches = []
        for layer in self.chain():
            x, cache = layer.forward(x, context)
            caches.append(cache)
        return x, caches

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        for layer, layer_cache in zip(reversed(self.chain()), reversed(cache), strict=True):
            dy = layer.backward(dy, layer_cache, gradients)
        return dy

    # The model's edge: what comes in is checked here, and uploaded --------------------------------

    def prepare(self, x: Array, mask: Array | None = None) -> tuple[Array, Array | None]:
        """Check inputs and bring them to the model's backend, padding's features as 0.

        Parameters
        ----------
        x, mask : array
            As in `check`.
        """
        self.check(x, mask)
        x = asarray(x, self.backend)
        mask = None if mask is None else asarray(mask, self.backend)
        return self.without_padding(x, mask), mask

    def check(self, x: Array, mask: Array | None = None) -> None:
        """Check inputs.

        Parameters
        ----------
        x : int array (batch, length), or float array (batch, length, n_features)
        mask : bool array, shape (batch, length), optional
            Padding: True = keep.

        Raises
        ------
        TypeError
            Not an array, or of the wrong dtype.
        ValueError
            A wrong shape, a token id out of range, a sequence longer than max_len.
        """
        checks.on_host_or("x", x, self)
        if self.vocab_size is not None:
            self.check_shape(x)
            check_ids("x", x, self.vocab_size, f"vocab_size is {self.vocab_size}")
        else:
            checks.floating(x=x)
            self.check_shape(x)
            if x.dtype.name != self.dtype:
                raise TypeError(
                    f"x has dtype {x.dtype} and the model {self.dtype}; expected one dtype. "
                    f"Nothing is cast silently: write x.astype({self.dtype!r}), or build the "
                    f"model with dtype={x.dtype.name!r}"
                )
        checks.at_most(x, self.max_len, "model")
        if mask is not None:
            checks.on_host_or("mask", mask, self)
            checks.mask("mask", mask, tuple(x.shape[:2]))

    def without_padding(self, x: Array, mask: Array | None) -> Array:
        """Return x with the features of padding as 0.

        Padding may hold anything, NaN too, and 0 * NaN would reach the tokens that are kept.

        Parameters
        ----------
        x, mask : array
            Checked, and on the model's backend.
        """
        if mask is None or self.n_features is None:
            return x
        return array_module(x).where(mask[..., None], x, 0.0)

    def check_shape(self, x: Array) -> None:
        """Check that x holds what the model takes, token ids or feature vectors.

        Parameters
        ----------
        x : array

        Raises
        ------
        ValueError
            Another number of axes, or of features.
        """
        if self.vocab_size is not None:
            checks.shape("x", x, ("batch", "length"), "This model takes token ids")
        else:
            expected = ("batch", "length", self.n_features)
            checks.shape("x", x, expected, "This model takes feature vectors")

    def check_types(self, types: Array | None, x: Array) -> None:
        """Check token types.

        Parameters
        ----------
        types : int array, shape (batch, length), or None
            From 0 to n_token_types - 1. None: every token is of type 0.
        x : array
            What they belong to.

        Raises
        ------
        TypeError
            Not an array, or not whole numbers.
        ValueError
            The model has no token types, a wrong shape, a type out of range.
        """
        if types is None:
            return
        if self.n_token_types == 0:
            raise ValueError(
                "types is given and the model has no token types. Leave types out, or build the "
                "model with EncoderConfig(n_token_types=2)"
            )
        checks.on_host_or("types", types, self)
        checks.shape("types", types, tuple(x.shape[:2]), "One type for each token")
        check_ids("types", types, self.n_token_types, f"n_token_types is {self.n_token_types}")

    def prepare_types(self, types: Array | None, x: Array) -> Array | None:
        """Check token types and bring them to the model's backend.

        Parameters
        ----------
        types, x : array
            As in `check_types`.
        """
        self.check_types(types, x)
        return None if types is None else asarray(types, self.backend)
