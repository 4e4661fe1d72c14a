"""The decoder: blocks that also read a memory, which an encoder made from another sequence."""

from dataclasses import replace
from functools import partial
from typing import Any

from npformer.core import Array, Context, Gradients, Seed, checks, generators
from npformer.core.inputs import TwoInputLayer
from npformer.layers import BlockwiseCrossAttention, CrossAttention, Dropout
from npformer.layers.pooling import hide_padding, without_padding
from npformer.layers.sequential import backward_chain, forward_chain
from npformer.layers.state import State, States
from npformer.mixers.attention import LONG
from npformer.models.block import EncoderBlock, MixerStep, Residual
from npformer.models.config import EncoderConfig
from npformer.models.encoder import Encoder


class MemoryAttention:
    """Cross-attention to one memory, as a layer with one input for a call of a block.

    That way the residual connections of all sublayers are the same two functions. The gradient of
    the memory is in `dmemory` after the backward pass.
    """

    def __init__(self, attention: CrossAttention, memory: Array | None = None) -> None:
        self.attention = attention
        self.memory = memory
        self.dmemory: Array = None

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return what the tokens of x read in the memory, and what `backward` needs."""
        return self.attention.forward(x, self.memory, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Return dx, and keep the gradient of the memory."""
        dx, self.dmemory = self.attention.backward(dy, cache, gradients)
        return dx


class CachedMemoryAttention:
    """Cross-attention to a memory whose keys and values are kept: a layer with one input."""

    def __init__(self, attention: CrossAttention, memory: State) -> None:
        self.attention = attention
        self.memory = memory

    def forward(self, x: Array, context: Context) -> tuple[Array, None]:
        """Return what the tokens of x read in the memory."""
        return self.attention.look(x, self.memory, context), None


class DecoderBlock(EncoderBlock):
    """A mixer that does not look ahead, cross-attention to a memory, a feed-forward network.

    Post-norm, as in Vaswani et al. (2017), section 3.1::

        x = norm(x + dropout(mixer(x)))
        x = norm(x + dropout(cross_attention(x, memory)))
        x = norm(x + dropout(feed_forward(x)))

    Pre-norm moves each norm to its sublayer's input, as in `EncoderBlock`; the memory has the
    norm at the end of its encoder.

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
        long = config.memory == "auto" and config.max_len >= LONG
        in_blocks = (long or config.memory == "blocks") and config.attention_dropout == 0.0
        kind = BlockwiseCrossAttention if in_blocks else CrossAttention
        self.cross_attention = kind(
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
        attention = MemoryAttention(self.cross_attention, memory)
        return forward_chain(self.halves(self.mixer, attention), x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        attention = MemoryAttention(self.cross_attention)
        dx = backward_chain(self.halves(self.mixer, attention), dy, cache, gradients)
        return dx, attention.dmemory

    def prefill(self, x: Array, state: Any, context: Context) -> tuple[Array, States]:
        """As `EncoderBlock.prefill`; a state is the mixer's, and what is kept of the memory."""
        of_mixer, memory = state
        step = MixerStep(self.mixer, of_mixer)
        halves = self.halves(step, CachedMemoryAttention(self.cross_attention, memory))
        return forward_chain(halves, x, context)[0], States((step.state, memory))

    def halves(self, mixer: Any, *between: Any) -> list[Residual]:
        (reading,) = between
        read = reading, self.cross_attention_dropout, self.cross_attention_norm
        return super().halves(mixer, read)


class Decoder(Encoder):
    """A stack of blocks: (batch, length, d_model) and a memory to the first shape.

    The memory is (batch, memory_length, d_memory). What x, the memory and dy hold at padding, even
    NaN, changes nothing.

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
        made: dict[str, Any] = {"seed": generators.from_seed(seed), "dtype": dtype}
        self._stack(config, dtype, partial(DecoderBlock, config, d_memory=d_memory, **made))

    def forward(self, x: Array, memory: Array, context: Context) -> tuple[Array, Any]:  # type: ignore[override]
        self.check(x)
        x, context, hidden = hide_padding(x, context)
        memory, of_memory, hidden_memory = hide_padding(memory, context.for_memory())
        context = replace(context, memory_padding=of_memory.padding)
        caches = []
        for block in self.blocks:
            x, cache = block.forward(x, memory, context)
            caches.append(cache)
        norm_cache = None
        if self.final_norm is not None:
            x, norm_cache = self.final_norm.forward(x, context)
        return without_padding(x, hidden), (caches, norm_cache, hidden, hidden_memory)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        caches, norm_cache, hidden, hidden_memory = cache
        dx = without_padding(dy, hidden)
        if self.final_norm is not None:
            dx = self.final_norm.backward(dx, norm_cache, gradients)
        dmemory = None
        for block, of_block in zip(reversed(self.blocks), reversed(caches), strict=True):
            dx, more = block.backward(dx, of_block, gradients)
            dmemory = more if dmemory is None else dmemory + more  # all blocks read it
        return without_padding(dx, hidden), without_padding(dmemory, hidden_memory)

    def start_with(self, memory: Array, length: int, context: Context) -> States:
        """Return the state before the first token of each sequence, with what is read of a memory.

        Padding of the memory is in ``context.memory_padding``. See `DecoderBlock.prefill`.
        """
        return States(
            States((block.start(len(memory), length), block.cross_attention.read(memory, context)))
            for block in self.blocks
        )


def check_causal(config: EncoderConfig) -> None:
    """Check that a configuration is for a model that writes one token at a time."""
    checks.instance("config", config, EncoderConfig)
    if not config.causal:
        raise ValueError(
            "config.causal is False; expected True, because later tokens must not be seen. Write "
            "dataclasses.replace(config, causal=True)"
        )
