"""The encoder: blocks of a token mixer and a feed-forward network."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Seed, backend_of, checks, initializers
from npformer.layers import LayerNorm
from npformer.models.block import EncoderBlock as EncoderBlock
from npformer.models.config import POSITIONS as POSITIONS
from npformer.models.config import EncoderConfig as EncoderConfig


class Encoder(Layer):
    """A stack of blocks: (batch, length, d_model) to the same shape.

    Parameters
    ----------
    config : EncoderConfig
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    blocks : list of EncoderBlock
        With ``share_layers`` the same block n_layers times.
    final_norm : LayerNorm or None
        Pre-norm encoders end in one.
    """

    def __init__(self, config: EncoderConfig, seed: Seed = 0, dtype: str = "float32") -> None:
        if not isinstance(config, EncoderConfig):
            raise TypeError(
                f"config is a {type(config).__name__}; expected an EncoderConfig. "
                "Write npformer.EncoderConfig(d_model=64, ...)"
            )
        rng = initializers.generator(seed)
        self.config = config
        mixers = config.mixers()
        if config.share_layers:
            block = EncoderBlock(config, mixers[0], seed=rng, dtype=dtype)
            self.blocks = [block] * config.n_layers
        else:
            self.blocks = [EncoderBlock(config, m, seed=rng, dtype=dtype) for m in mixers]
        self.final_norm = (
            LayerNorm(config.d_model, config.norm_eps, dtype=dtype)
            if config.norm == "pre"
            else None
        )
        self.flatten()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        self.check(x, context)
        caches = []
        for block in self.blocks:
            x, cache = block.forward(x, context)
            caches.append(cache)
        if self.final_norm is None:
            return x, (caches, None)
        x, norm_cache = self.final_norm.forward(x, context)
        return x, (caches, norm_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        caches, norm_cache = cache
        if self.final_norm is not None:
            dy = self.final_norm.backward(dy, norm_cache, gradients)
        for block, block_cache in zip(reversed(self.blocks), reversed(caches), strict=True):
            dy = block.backward(dy, block_cache, gradients)
        return dy

    def check(self, x: Array, context: Context) -> None:
        """Check that x, (batch, length, d_model), and its padding mask are what `forward` takes."""
        checks.floating(x=x)
        checks.shape("x", x, ("batch", "length", self.config.d_model), "Features are the last axis")
        checks.at_most(x, self.config.max_len, "encoder")
        if context.mask is not None:
            backend_of(x=x, mask=context.mask)
            checks.mask("mask", context.mask, tuple(x.shape[:2]))
