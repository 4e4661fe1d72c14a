"""The decoder: blocks that also read a memory, the output of an encoder for another sequence."""

from dataclasses import replace
from functools import partial
from typing import Any

from npformer.core import Array, Context, Gradients, Seed, checks, generators
from npformer.core.inputs import TwoInputLayer
from npformer.layers import BlockwiseCrossAttention, CrossAttention, Dropout
from npformer.layers.pooling import hide_padding, without_padding
from npformer.layers.state import States
from npformer.mixers.general_attention import BLOCKWISE_FROM_LENGTH
from npformer.models.block import EncoderBlock
from npformer.models.config import EncoderConfig
from npformer.models.encoder import Encoder


class DecoderBlock(EncoderBlock):
    """A mixer that does not look ahead, cross-attention to a memory, a feed-forward network.

    Post-norm, as in Vaswani et al. (2017), section 3.1::

        x = norm(x + dropout(mixer(x)))
        x = norm(x + dropout(cross_attention(x, memory)))
        x = norm(x + dropout(feed_forward(x)))

    Pre-norm moves each norm to its sublayer's input, as in `EncoderBlock`; the memory has been
    normalised at the end of its encoder.

    Parameters
    ----------
    config : EncoderConfig
    mixer : str
        A name in `MIXERS`, of a mixer that can be causal.
    layer : int
        As in `EncoderBlock`.
    d_memory : int, optional
        Features of a token of the memory; None: d_model.
    """

    n_inputs = 2
    __call__ = TwoInputLayer.__call__  # type: ignore[assignment]

    def __init__(
        self,
        config: EncoderConfig,
        mixer: str = "attention",
        *,
        layer: int = 0,
        d_memory: int | None = None,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        rng = generators.from_seed(seed)
        self._add_mixer(config, mixer, layer, rng, dtype)
        is_long = config.memory == "auto" and config.max_len >= BLOCKWISE_FROM_LENGTH
        is_blockwise = (is_long or config.memory == "blocks") and config.attention_dropout == 0.0
        attention_class = BlockwiseCrossAttention if is_blockwise else CrossAttention
        self.cross_attention = attention_class(
            config.d_model,
            config.n_heads,
            d_memory=d_memory,
            initializer=config.initializer,
            attention_dropout=config.attention_dropout,
            seed=rng,
            dtype=dtype,
        )
        self.cross_attention_dropout = Dropout(config.dropout)
        self.cross_attention_norm = config.make_norm(dtype)
        self._add_feed_forward(config, rng, dtype)

    def forward(self, x: Array, memory: Array, context: Context) -> tuple[Array, Any]:  # type: ignore[override]
        if self.norm == "post":
            y, mixer_cache = self.mixer.forward(x, context)
            y, mixer_dropout_cache = self.mixer_dropout.forward(y, context)
            x, mixer_norm_cache = self.mixer_norm.forward(x + y, context)
            y, cross_cache = self.cross_attention.forward(x, memory, context)
            y, cross_dropout_cache = self.cross_attention_dropout.forward(y, context)
            x, cross_norm_cache = self.cross_attention_norm.forward(x + y, context)
        else:
            y, mixer_norm_cache = self.mixer_norm.forward(x, context)
            y, mixer_cache = self.mixer.forward(y, context)
            y, mixer_dropout_cache = self.mixer_dropout.forward(y, context)
            x = x + y
            y, cross_norm_cache = self.cross_attention_norm.forward(x, context)
            y, cross_cache = self.cross_attention.forward(y, memory, context)
            y, cross_dropout_cache = self.cross_attention_dropout.forward(y, context)
            x = x + y
        z, network_caches = self.network(x, context)
        mixer_caches = mixer_cache, mixer_dropout_cache, mixer_norm_cache
        cross_caches = cross_cache, cross_dropout_cache, cross_norm_cache
        return z, (mixer_caches, cross_caches, network_caches)

    def backward(self, dz: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        mixer_caches, cross_caches, network_caches = cache
        mixer_cache, mixer_dropout_cache, mixer_norm_cache = mixer_caches
        cross_cache, cross_dropout_cache, cross_norm_cache = cross_caches
        dx = self.network_backward(dz, network_caches, gradients)
        if self.norm == "post":
            # x = norm(x + dropout(cross_attention(x, memory)))
            dsum = self.cross_attention_norm.backward(dx, cross_norm_cache, gradients)
            dy = self.cross_attention_dropout.backward(dsum, cross_dropout_cache, gradients)
            dx, dmemory = self.cross_attention.backward(dy, cross_cache, gradients)
            dx = dsum + dx
            # x = norm(x + dropout(mixer(x)))
            dsum = self.mixer_norm.backward(dx, mixer_norm_cache, gradients)
            dy = self.mixer_dropout.backward(dsum, mixer_dropout_cache, gradients)
            return dsum + self.mixer.backward(dy, mixer_cache, gradients), dmemory
        # x = x + dropout(cross_attention(norm(x), memory))
        dy = self.cross_attention_dropout.backward(dx, cross_dropout_cache, gradients)
        dy, dmemory = self.cross_attention.backward(dy, cross_cache, gradients)
        dx = dx + self.cross_attention_norm.backward(dy, cross_norm_cache, gradients)
        # x = x + dropout(mixer(norm(x)))
        dy = self.mixer_dropout.backward(dx, mixer_dropout_cache, gradients)
        dy = self.mixer.backward(dy, mixer_cache, gradients)
        return dx + self.mixer_norm.backward(dy, mixer_norm_cache, gradients), dmemory

    # One token after another ------------------------------------------------------------------

    def prefill(self, x: Array, state: Any, context: Context) -> tuple[Array, States]:
        """As `EncoderBlock.prefill`; a state is the mixer's, and the memory's keys and values."""
        mixer_state, memory = state
        if self.norm == "post":
            y, mixer_state = self.mixer.prefill(x, mixer_state, context)
            y, _ = self.mixer_dropout.forward(y, context)
            x, _ = self.mixer_norm.forward(x + y, context)
            y = self.cross_attention.look(x, memory, context)
            y, _ = self.cross_attention_dropout.forward(y, context)
            x, _ = self.cross_attention_norm.forward(x + y, context)
        else:
            y, _ = self.mixer_norm.forward(x, context)
            y, mixer_state = self.mixer.prefill(y, mixer_state, context)
            y, _ = self.mixer_dropout.forward(y, context)
            x = x + y
            y, _ = self.cross_attention_norm.forward(x, context)
            y = self.cross_attention.look(y, memory, context)
            y, _ = self.cross_attention_dropout.forward(y, context)
            x = x + y
        z, _ = self.network(x, context)
        return z, States((mixer_state, memory))


class Decoder(Encoder):
    """A stack of blocks: (batch, length, d_model) and a memory to the first shape.

    The memory is (batch, memory_length, d_memory). Values of x, the memory and dy at padding, even
    NaN, do not change the result.

    Parameters
    ----------
    config : EncoderConfig
        With ``causal=True``.
    d_memory : int, optional
        Features of a token of the memory; None: d_model.

    Attributes
    ----------
    blocks : list of DecoderBlock
    final_norm : Layer or None
        Only in pre-norm decoders.
    """

    n_inputs = 2

    def __init__(
        self,
        config: EncoderConfig,
        seed: Seed = 0,
        dtype: str = "float32",
        *,
        d_memory: int | None = None,
    ) -> None:
        check_causal(config)
        rng = generators.from_seed(seed)
        make_block = partial(DecoderBlock, config, d_memory=d_memory, seed=rng, dtype=dtype)
        self._make_blocks(config, dtype, make_block)

    def forward(self, x: Array, memory: Array, context: Context) -> tuple[Array, Any]:  # type: ignore[override]
        self.check(x)
        x, context, mask = hide_padding(x, context)
        memory, memory_context, memory_mask = hide_padding(memory, context.for_memory())
        context = replace(context, memory_padding=memory_context.padding)
        block_caches = []
        for block in self.blocks:
            x, block_cache = block.forward(x, memory, context)
            block_caches.append(block_cache)
        norm_cache = None
        if self.final_norm is not None:
            x, norm_cache = self.final_norm.forward(x, context)
        return without_padding(x, mask), (block_caches, norm_cache, mask, memory_mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        block_caches, norm_cache, mask, memory_mask = cache
        dx = without_padding(dy, mask)
        if self.final_norm is not None:
            dx = self.final_norm.backward(dx, norm_cache, gradients)
        dmemory = None
        for block, block_cache in zip(reversed(self.blocks), reversed(block_caches), strict=True):
            dx, dmemory_of_block = block.backward(dx, block_cache, gradients)
            # All blocks read the memory, so its gradient is a sum.
            dmemory = dmemory_of_block if dmemory is None else dmemory + dmemory_of_block
        return without_padding(dx, mask), without_padding(dmemory, memory_mask)

    def start_with(self, memory: Array, length: int, context: Context) -> States:
        """Return the states before the first token of each sequence, with the memory read.

        Padding of the memory is in ``context.memory_padding``. See `DecoderBlock.prefill`.
        """
        states = []
        for block in self.blocks:
            mixer_state = block.start(len(memory), length)
            keys_and_values = block.cross_attention.read(memory, context)
            states.append(States((mixer_state, keys_and_values)))
        return States(states)


def check_causal(config: EncoderConfig) -> None:
    """Check that a configuration is for a model that writes one token at a time."""
    checks.instance("config", config, EncoderConfig)
    if not config.causal:
        raise ValueError(
            "config.causal is False; expected True, because later tokens must not be seen. Write "
            "dataclasses.replace(config, causal=True)"
        )
