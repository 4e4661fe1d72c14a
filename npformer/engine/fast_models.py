"""Fast models: the plain passes call twins of their layers, and residual sums use lent memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

from npformer.core import Array, Context, Gradients, Layer, array_module, is_host_array, value_of
from npformer.engine.context import EngineContext, engine_context
from npformer.engine.fast_layers import FastDropout, FastLayerNorm
from npformer.engine.fast_linear import FastFeedForward
from npformer.engine.one_use import take, taken_once
from npformer.engine.twin_classes import TABLE, Child, Fast, FirstChild, Saved, is_exactly
from npformer.layers import CrossAttention, Dropout, LayerNorm
from npformer.layers.pooling import hide_padding, without_padding
from npformer.layers.state import State, States
from npformer.mixers import Mixer
from npformer.models import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    InputEmbedding,
    MaskedTokens,
    NextToken,
    SequenceModel,
    Transformer,
)


def add(one: Array, other: Array, context: EngineContext) -> Array:
    """Return ``one + other`` in lent memory; adding in place could change a user's array."""
    return array_module(one).add(one, other, out=context.empty(one.shape, one))


class MixerStep:
    """A mixer that continues from a state, called like a layer.

    `forward` leaves the new state in `state`.
    """

    def __init__(self, mixer: Mixer, state: Any) -> None:
        self.mixer = mixer
        self.state = state

    def forward(self, x: Array, context: Context) -> tuple[Array, None]:
        """Return the mixer's outputs for the tokens that follow the state."""
        y, self.state = self.mixer.prefill(x, self.state, context)
        return y, None


class MemoryReader:
    """Cross-attention to a memory whose keys and values are stored, called like a layer."""

    def __init__(self, attention: CrossAttention, memory: State) -> None:
        self.attention = attention
        self.memory = memory

    def forward(self, x: Array, context: Context) -> tuple[Array, None]:
        """Return the averages of the memory's values for the tokens of x."""
        return self.attention.look(x, self.memory, context), None


class MemoryAttention:
    """Cross-attention to one memory, called like a layer with a single input.

    `backward` leaves the gradient of the memory in `dmemory`.
    """

    def __init__(self, attention: CrossAttention, memory: Array | None = None) -> None:
        self.attention = attention
        self.memory = memory
        self.dmemory: Array = None

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the averages of the memory's values, and what `backward` needs."""
        return self.attention.forward(x, self.memory, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Return dx, and store the gradient of the memory."""
        dx, self.dmemory = self.attention.backward(dy, cache, gradients)
        return dx


class Computed:
    """A sublayer that has already run, called like a layer."""

    def __init__(self, y: Array) -> None:
        self.y = y

    def forward(self, x: Array, context: Context) -> tuple[Array, None]:
        """Return the output."""
        return self.y, None


class FastBlock(Fast, EncoderBlock):
    """`EncoderBlock` with residual sums in lent memory, or by one kernel with dropout and norm."""

    __slots__ = ()
    mixer = Child()
    mixer_dropout = Child()
    mixer_norm = Child()
    feed_forward = Child()
    feed_forward_dropout = Child()
    feed_forward_norm = Child()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        residual = self._post_norm if self.norm == "post" else self._pre_norm
        x, mixer_caches = residual(self.mixer, self.mixer_dropout, self.mixer_norm, x, context)
        z, network_caches = self.network(x, context)
        return z, taken_once((mixer_caches, network_caches), context)

    def backward(self, dz: Array, cache: Any, gradients: Gradients) -> Array:
        dx: Array = self.network_backward(dz, take(cache, 1), gradients)
        return self._residual_backward()(
            self.mixer, self.mixer_dropout, self.mixer_norm, dx, take(cache, 0), gradients
        )

    def network(self, x: Array, context: Context) -> tuple[Array, Any]:
        if self.__dict__["feed_forward"] is None:
            return x, None
        residual = self._post_norm if self.norm == "post" else self._pre_norm
        return residual(
            self.feed_forward, self.feed_forward_dropout, self.feed_forward_norm, x, context
        )

    def network_backward(self, dz: Array, caches: Any, gradients: Gradients) -> Array:
        if caches is None:
            return dz
        dx: Array = self._residual_backward()(
            self.feed_forward,
            self.feed_forward_dropout,
            self.feed_forward_norm,
            dz,
            caches,
            gradients,
        )
        return dx

    def prefill(self, x: Array, state: Any, context: Context) -> tuple[Array, Any]:
        step = MixerStep(self.mixer, state)
        return self.through(x, context, {"mixer": step}), step.state

    def through(self, x: Array, context: Context, sublayers: dict[str, Any]) -> Array:
        """Return x after the sublayers, which have names, and after the feed-forward network.

        This is for evaluation: it stores no caches.
        """
        attributes, context = self.__dict__, engine_context(context)
        if attributes["feed_forward"] is not None:
            sublayers = {**sublayers, "feed_forward": self.feed_forward}
        if list(sublayers) == ["mixer", "feed_forward"]:
            z, sublayers["mixer"] = self._short_rest(x, sublayers["mixer"], context)
            if z is not None:
                return z
        residual = self._post_norm if self.norm == "post" else self._pre_norm
        adds_only = self.norm == "pre" and not context.training
        for name, sublayer in sublayers.items():
            norm = getattr(self, f"{name}_norm")
            if adds_only and is_exactly(attributes[f"{name}_dropout"], Dropout):
                normed, _ = norm.forward(x, context)
                x = x + sublayer.forward(normed, context)[0]
            else:
                dropout = getattr(self, f"{name}_dropout")
                x, _ = residual(sublayer, dropout, norm, x, context)
        return x

    def _short_rest(self, x: Array, mixer: Any, context: EngineContext) -> tuple[Array, Any]:
        """Return the block's output for a few short sequences, by one kernel after the mixer.

        Without a kernel the output is None, and the mixer is returned for the usual passes: as
        itself, or, if it has already run, in a form that returns its output.
        """
        network = self._short_network(x, context)
        if network is None:
            return None, mixer
        mixer_input = x if self.norm == "post" else self.mixer_norm.forward(x, context)[0]
        y, _ = mixer.forward(mixer_input, context)
        return network(x, y), Computed(y)

    def _short_network(self, x: Array, context: EngineContext) -> Callable[..., Any] | None:
        """Return a function of x and the mixer's output: the kernel for the rest of the block.

        Return None if there is none for x, or if it lacks a layer of this block.
        """
        attributes = self.__dict__
        kernel = self.short_kernel("short_network", x, context)
        network = self.feed_forward
        if kernel is None or type(network) is not FastFeedForward:
            return None
        arguments = network.kernel_arguments()
        norms = attributes["mixer_norm"], attributes["feed_forward_norm"]
        dropouts = attributes["mixer_dropout"], attributes["feed_forward_dropout"]
        has_stock_norms = all(
            is_exactly(norm, LayerNorm) and norm.beta is not None for norm in norms
        )
        has_stock_dropouts = all(is_exactly(dropout, Dropout) for dropout in dropouts)
        if arguments is None or not (has_stock_norms and has_stock_dropouts):
            return None
        parameters, activation = arguments
        norm1, norm2 = ((norm.gamma.value, norm.beta.value, norm.eps) for norm in norms)
        return partial(
            kernel,
            norm1=norm1 if self.norm == "post" else None,
            maps=[parameter.value for parameter in parameters],
            activation=activation,
            norm2=norm2,
        )

    def _residual_backward(self) -> Callable[..., Array]:
        """Return the backward pass of a residual connection."""
        return self._post_norm_backward if self.norm == "post" else self._pre_norm_backward

    def _post_norm(
        self, sublayer: Any, dropout: Any, norm: Any, x: Array, context: Context
    ) -> tuple[Array, Any]:
        context = engine_context(context)
        y, sublayer_cache = sublayer.forward(x, context)
        kernel = None
        if type(dropout) is FastDropout and type(norm) is FastLayerNorm:
            kernel = self._twins.kernel("residual_norm", x)
        if kernel is not None and norm.beta is None and not is_host_array(x):
            kernel = None
        if kernel is not None and y.dtype is x.dtype and y.shape == x.shape:
            gamma, beta = norm.gamma.value, value_of(norm.beta)
            z, cache = kernel[0](x, y, gamma, beta, norm.eps, dropout.rate, context)
            return z, (sublayer_cache, Saved(kernel[1], cache), None, context)
        dropped, dropout_cache = dropout.forward(y, context)
        z, norm_cache = norm.forward(self._sum(x, dropped, context), context)
        return z, (sublayer_cache, dropout_cache, norm_cache, context)

    def _post_norm_backward(
        self,
        sublayer: Any,
        dropout: Layer,
        norm: Any,
        dz: Array,
        cache: Any,
        gradients: Gradients,
    ) -> Array:
        sublayer_cache, dropout_cache, norm_cache, context = cache
        if norm_cache is None and type(norm) is FastLayerNorm:
            dsum, dy, dgamma, *dbeta = dropout_cache.backward(dz, dropout_cache.cache)
            gradients.add_each((norm.gamma, norm.beta), (dgamma, *dbeta))
        else:
            dsum = norm.backward(dz, norm_cache, gradients)
            dy = dropout.backward(dsum, dropout_cache, gradients)
        return self._sum(dsum, sublayer.backward(dy, sublayer_cache, gradients), context)

    def _pre_norm(
        self, sublayer: Any, dropout: Layer, norm: Layer, x: Array, context: Context
    ) -> tuple[Array, Any]:
        context = engine_context(context)
        n, norm_cache = norm.forward(x, context)
        y, sublayer_cache = sublayer.forward(n, context)
        dropped, dropout_cache = dropout.forward(y, context)
        z = self._sum(x, dropped, context)
        return z, (sublayer_cache, dropout_cache, norm_cache, context)

    def _pre_norm_backward(
        self,
        sublayer: Any,
        dropout: Layer,
        norm: Layer,
        dz: Array,
        cache: Any,
        gradients: Gradients,
    ) -> Array:
        sublayer_cache, dropout_cache, norm_cache, context = cache
        dy = dropout.backward(dz, dropout_cache, gradients)
        dn = sublayer.backward(dy, sublayer_cache, gradients)
        return self._sum(dz, norm.backward(dn, norm_cache, gradients), context)

    def _sum(self, one: Array, other: Array, context: EngineContext) -> Array:
        """Return a sum, in lent memory if there are kernels for both arrays."""
        if self._twins.kernel("linear", one) is None or other.dtype is not one.dtype:
            return one + other
        return add(one, other, context)


class FastEncoder(Fast, Encoder):
    """`Encoder` with fast blocks, which drops each block's cache as soon as nobody needs it.

    That is at once if no backward pass follows, and during a backward pass that runs once.
    """

    __slots__ = ()
    blocks = Child()
    final_norm = Child()

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if context.keep:
            y, (block_caches, norm_cache, mask) = super().forward(x, context)
            return y, (taken_once(block_caches, context), norm_cache, mask)
        self.check(x)
        x, context, mask = hide_padding(x, context)
        for block in self.blocks:
            if type(block) is FastBlock:
                x = block.through(x, context, {"mixer": block.mixer})
            else:
                x, _ = block.forward(x, context)
        if self.final_norm is not None:
            x, _ = self.final_norm.forward(x, context)
        return without_padding(x, mask), None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        block_caches, norm_cache, mask = cache
        dx = without_padding(dy, mask)
        if self.final_norm is not None:
            dx = self.final_norm.backward(dx, norm_cache, gradients)
        for index in reversed(range(len(self.blocks))):
            dx = self.blocks[index].backward(dx, take(block_caches, index), gradients)
        return without_padding(dx, mask)


class FastDecoderBlock(FastBlock, DecoderBlock):
    """`DecoderBlock` with the residual sums of `FastBlock`."""

    __slots__ = ()
    cross_attention = Child()
    cross_attention_dropout = Child()
    cross_attention_norm = Child()

    def forward(self, x: Array, memory: Array, context: Context) -> tuple[Array, Any]:  # type: ignore[override]
        residual = self._post_norm if self.norm == "post" else self._pre_norm
        x, mixer_caches = residual(self.mixer, self.mixer_dropout, self.mixer_norm, x, context)
        attention = MemoryAttention(self.cross_attention, memory)
        x, cross_caches = residual(
            attention, self.cross_attention_dropout, self.cross_attention_norm, x, context
        )
        z, network_caches = self.network(x, context)
        return z, (mixer_caches, cross_caches, network_caches)

    def backward(self, dz: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        mixer_caches, cross_caches, network_caches = cache
        residual_backward = self._residual_backward()
        dx: Array = self.network_backward(dz, network_caches, gradients)
        attention = MemoryAttention(self.cross_attention)
        dx = residual_backward(
            attention,
            self.cross_attention_dropout,
            self.cross_attention_norm,
            dx,
            cross_caches,
            gradients,
        )
        dx = residual_backward(
            self.mixer, self.mixer_dropout, self.mixer_norm, dx, mixer_caches, gradients
        )
        return dx, attention.dmemory

    def prefill(self, x: Array, state: Any, context: Context) -> tuple[Array, Any]:
        mixer_state, memory = state
        step = MixerStep(self.mixer, mixer_state)
        reader = MemoryReader(self.cross_attention, memory)
        x = self.through(x, context, {"mixer": step, "cross_attention": reader})
        return x, States((step.state, memory))


TABLE.add(EncoderBlock, FastBlock)
TABLE.add(DecoderBlock, FastDecoderBlock)
TABLE.add_container(Decoder, "final_norm", "blocks")
TABLE.add(Encoder, FastEncoder)
TABLE.add_container(
    InputEmbedding,
    "tokens",
    "token_dropout",
    "positions",
    "types",
    "norm",
    "projection",
    "dropout",
    tokens=FirstChild(),
)
TABLE.add_container(SequenceModel, "embed", "encoder", "pool", "classify", embed=FirstChild())
TABLE.add_container(NextToken, "embed", "encoder", "output", embed=FirstChild())
TABLE.add_container(
    MaskedTokens,
    "embed",
    "encoder",
    "choose",
    "dense",
    "activation",
    "norm",
    "output",
    embed=FirstChild(),
)
TABLE.add_container(
    Transformer,
    "source",
    "encoder",
    "target",
    "decoder",
    "output",
    source=FirstChild(),
    target=FirstChild(),
)
