"""The encoder: blocks of a token mixer and a feed-forward network."""

from collections.abc import Callable
from functools import partial
from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Seed, checks, generators
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers.pooling import hide_padding, without_padding
from npformer.layers.state import States
from npformer.models.block import EncoderBlock
from npformer.models.config import EncoderConfig


@drop_class_from_names
class Encoder(Layer):
    """A stack of blocks: (batch, length, d_model) to the same shape, with 0 at padding.

    Values of x and dy at padding, even NaN, do not change the result.

    Attributes
    ----------
    blocks : list of EncoderBlock
        With ``config.share_layers``, the same block n_layers times.
    final_norm : Layer or None
        Only in pre-norm encoders.
    """

    def __init__(self, config: EncoderConfig, seed: Seed = 0, dtype: str = "float32") -> None:
        advice = "Write npformer.EncoderConfig(d_model=64, ...)"
        checks.instance("config", config, EncoderConfig, advice)
        rng = generators.from_seed(seed)
        make_block = partial(EncoderBlock, config, seed=rng, dtype=dtype)
        self._make_blocks(config, dtype, make_block)

    def _make_blocks(
        self, config: EncoderConfig, dtype: str, make_block: Callable[..., Any]
    ) -> None:
        """Make a block for each layer; with `share_layers`, one block is used n_layers times."""
        self.config = config
        mixers = config.mixers()
        if config.share_layers:
            self.blocks = [make_block(mixers[0], layer=0)] * len(mixers)
        else:
            self.blocks = [make_block(mixer, layer=i) for i, mixer in enumerate(mixers)]
        self.final_norm: Layer | None = None
        if config.norm == "pre":
            self.final_norm = config.make_norm(dtype)
        self.flatten()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        self.check(x)
        x, context, mask = hide_padding(x, context)
        block_caches = []
        for block in self.blocks:
            x, block_cache = block.forward(x, context)
            block_caches.append(block_cache)
        norm_cache = None
        if self.final_norm is not None:
            x, norm_cache = self.final_norm.forward(x, context)
        return without_padding(x, mask), (block_caches, norm_cache, mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        block_caches, norm_cache, mask = cache
        dx = without_padding(dy, mask)
        if self.final_norm is not None:
            dx = self.final_norm.backward(dx, norm_cache, gradients)
        for block, block_cache in zip(reversed(self.blocks), reversed(block_caches), strict=True):
            dx = block.backward(dx, block_cache, gradients)
        return without_padding(dx, mask)

    def check(self, x: Array) -> None:
        """Check x, (batch, length, d_model)."""
        checks.sequences(x, self.config.d_model, self.config.max_len, "Features are the last axis")

    # One token after another ------------------------------------------------------------------

    def start(self, batch: int, length: int) -> States:
        """Return the states of the blocks before the first token of each sequence."""
        return States(block.start(batch, length) for block in self.blocks)

    def prefill(self, x: Array, states: States, context: Context) -> tuple[Array, States]:
        """Return y at evaluation for tokens that follow those in `states`, and the new states.

        See `Mixer.prefill`.
        """
        new_states = []
        for block, state in zip(self.blocks, states, strict=True):
            x, new_state = block.prefill(x, state, context)
            new_states.append(new_state)
        if self.final_norm is not None:
            x, _ = self.final_norm.forward(x, context)
        return x, States(new_states)
