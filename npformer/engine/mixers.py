"""Fast mixers: attention and the Dense Synthesizer as one kernel each, Fourier by another."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Parameter
from npformer.engine.context import adopted
from npformer.engine.layers import stock
from npformer.engine.twins import TABLE, Child, Children, Fast, Saved
from npformer.layers import Linear
from npformer.mixers import (
    Attention,
    AttentionScores,
    BlockwiseAttention,
    DenseScores,
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    FixedRandomSynthesizer,
    Fourier,
    Mixture,
    MixtureScores,
    RandomSynthesizer,
)

STORE = {"auto": None, "stored": True, "blocks": False}
"""Whether attention keeps its weights, by its `memory`; None: the kernel knows best."""


def weights_and_biases(*maps: Any) -> list[Parameter] | None:
    """Return the parameters of stock linear maps in order; None if one is not, or has no bias."""
    found: list[Parameter] = []
    for linear in maps:
        if not stock(linear, Linear) or linear.bias is None:
            return None
        found += [linear.weight, linear.bias]
    return found


class FastAveraging(Fast):
    """The children of an `AveragingMixer`; `heads` by one kernel, where that is possible."""

    __slots__ = ()
    scores = Child()
    value = Child()
    output = Child()

    def fused(self, x: Array) -> tuple[Any, list[Parameter], tuple[Any, ...]] | None:
        """Return kernels for all of `heads`, the parameters they pass over to, and settings."""
        return None

    def passes_over(self) -> tuple[Any, ...]:
        own: Any = self
        example = getattr(own.__dict__["value"], "weight", None)
        fused = None if example is None else self.fused(example.value)
        return () if fused is None else (own.__dict__["scores"],)

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the heads side by side, before W_O, and a cache for `heads_backward`."""
        found = self.fused(x)
        if found is None:
            return super().heads(x, context)  # type: ignore[misc, no-any-return]
        kernel, parameters, settings = found
        maps = [parameter.value for parameter in parameters]
        heads, cache = kernel[0](x, *maps, *settings, adopted(context))
        return heads, Saved(kernel[1], (cache, parameters))

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        """Add the parameters' gradients and return x's."""
        if type(cache) is not Saved:
            return super().heads_backward(dmerged, cache, gradients)  # type: ignore[misc]
        saved, parameters = cache.cache
        dx: Array
        dx, *dmaps = cache.backward(dmerged, saved)
        for parameter, gradient in zip(parameters, dmaps, strict=True):
            gradients.add(parameter, gradient)
        return dx


class FastAttention(FastAveraging, Attention):
    """`Attention` whose heads are one kernel."""

    __slots__ = ()

    def fused(self, x: Array) -> tuple[Any, list[Parameter], tuple[Any, ...]] | None:
        kernel = self._twins.kernel("attention_heads", x)
        own = self.__dict__
        scores = own["scores"]
        if kernel is None or not stock(scores, AttentionScores) or scores.n_heads != own["n_heads"]:
            return None
        maps = weights_and_biases(scores.query, scores.key, own["value"])
        settings = own["n_heads"], own["causal"], STORE.get(own["memory"])
        return None if maps is None else (kernel, maps, settings)


class FastBlockwiseAttention(FastAttention, BlockwiseAttention):
    """`BlockwiseAttention` whose heads are one kernel."""

    __slots__ = ()


class FastDenseSynthesizer(FastAveraging, DenseSynthesizer):
    """`DenseSynthesizer` whose heads are one kernel."""

    __slots__ = ()

    def fused(self, x: Array) -> tuple[Any, list[Parameter], tuple[Any, ...]] | None:
        kernel = self._twins.kernel("dense_heads", x)
        own = self.__dict__
        scores = own["scores"]
        if (
            kernel is None
            or not stock(scores, DenseScores)
            or len(scores.W2.value) != own["n_heads"]
        ):
            return None
        value = weights_and_biases(own["value"])
        maps = [scores.W1, scores.b1, scores.W2, scores.b2]
        return None if value is None else (kernel, maps + value, (own["causal"],))


class FastFactorizedDense(FastAveraging, FactorizedDenseSynthesizer):
    """`FactorizedDenseSynthesizer` with fast layers in it."""

    __slots__ = ()


class FastRandom(FastAveraging, RandomSynthesizer):
    """`RandomSynthesizer` with fast layers in it."""

    __slots__ = ()


class FastFixedRandom(FastAveraging, FixedRandomSynthesizer):
    """`FixedRandomSynthesizer` with fast layers in it."""

    __slots__ = ()


class FastFactorizedRandom(FastAveraging, FactorizedRandomSynthesizer):
    """`FactorizedRandomSynthesizer` with fast layers in it."""

    __slots__ = ()


class FastMixture(FastAveraging, Mixture):
    """`Mixture` with fast layers in it."""

    __slots__ = ()


class FastAttentionScores(Fast, AttentionScores):
    """`AttentionScores` with fast layers in it."""

    __slots__ = ()
    query = Child()
    key = Child()


class FastMixtureScores(Fast, MixtureScores):
    """`MixtureScores` with fast layers in it."""

    __slots__ = ()
    parts = Children()


class FastFourier(Fast, Fourier):
    """`Fourier` by a kernel."""

    __slots__ = ()

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        kernel = self._twins.kernel("fourier_mixing", x)
        if kernel is None:
            return super().mix(x, context)
        y, cache = kernel[0](x, context=adopted(context))
        return y, Saved(kernel[1], cache)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().mix_backward(dy, cache, gradients)
        dx: Array = cache.backward(dy, cache.cache)
        return dx


FAST_MIXERS: list[tuple[type[Layer], type]] = [
    (Attention, FastAttention),
    (BlockwiseAttention, FastBlockwiseAttention),
    (DenseSynthesizer, FastDenseSynthesizer),
    (FactorizedDenseSynthesizer, FastFactorizedDense),
    (RandomSynthesizer, FastRandom),
    (FixedRandomSynthesizer, FastFixedRandom),
    (FactorizedRandomSynthesizer, FastFactorizedRandom),
    (Mixture, FastMixture),
    (AttentionScores, FastAttentionScores),
    (MixtureScores, FastMixtureScores),
    (Fourier, FastFourier),
]
for row in FAST_MIXERS:
    TABLE.add(*row)
