"""Fast mixers: kernels for attention, for the Dense Synthesizer, and for Fourier mixing."""

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients, Parameter
from npformer.core.state import State
from npformer.engine.context import as_engine_context
from npformer.engine.fast_linear import weights_and_biases
from npformer.engine.twin_classes import TABLE, Child, Fast, Saved
from npformer.mixers import (
    Attention,
    AttentionScores,
    BlockwiseAttention,
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
"""Whether a kernel stores attention weights, by `Attention.memory`; None: it decides itself."""


def has_own_scores(attributes: dict[str, Any]) -> bool:
    """Return whether scores are set on the mixer itself, which has these attributes."""
    return "scores" in attributes or "scores_backward" in attributes


class FastAveraging(Fast):
    """An `AveragingMixer` with fast layers in it, and one kernel for its heads."""

    __slots__ = ()
    value = Child()
    output = Child()

    def fused(self, x: Array) -> tuple[Any, list[Parameter], tuple[Any, ...]] | None:
        """Return a pair of kernels for the heads, with the parameters and settings that they take.

        None if the kernels do not know one of the layers.
        """
        raise NotImplementedError

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        own: Any = self
        dropped = context.training and own.attention_dropout > 0.0  # runs as written
        found = None if dropped else self.fused(x)
        if found is None:
            return super().heads(x, context)  # type: ignore[misc, no-any-return]
        kernel, parameters, settings = found
        values = [parameter.value for parameter in parameters]
        heads, cache = kernel[0](x, *values, *settings, as_engine_context(context))
        return heads, Saved(kernel[1], (cache, parameters))

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().heads_backward(dmerged, cache, gradients)  # type: ignore[misc]
        saved, parameters = cache.cache
        dx: Array
        dx, *dparameters = cache.backward(dmerged, saved)
        for parameter, gradient in zip(parameters, dparameters, strict=True):
            gradients.add(parameter, gradient)
        return dx


class FastAttention(FastAveraging, Attention):
    """`Attention` whose heads are one kernel."""

    __slots__ = ()
    query = Child()
    key = Child()

    def fused(self, x: Array) -> tuple[Any, list[Parameter], tuple[Any, ...]] | None:
        kernel = self._twins.kernel("attention_heads", x)
        own = self.__dict__
        parameters = weights_and_biases(own["query"], own["key"], own["value"])
        if kernel is None or parameters is None or has_own_scores(own):
            return None
        return kernel, parameters, (own["n_heads"], own["causal"], STORE.get(own["memory"]))

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        one = type(x) is np.ndarray and x.shape[1] == 1 and context.padding is None
        found = self.fused(x) if one else None
        if found is None:
            return super().prefill(x, state, context)
        from npformer.engine.cpu.one_token import attention_of_one  # late, as in `kernels_of`

        values = [parameter.value for parameter in found[1]]
        rest = {"n_heads": found[2][0], "state": state, "context": context}
        heads, state = attention_of_one(x, *values, **rest)
        return self.output.forward(heads, context)[0], state


class FastBlockwiseAttention(FastAttention, BlockwiseAttention):
    """`BlockwiseAttention` whose heads are one kernel."""

    __slots__ = ()


class FastDenseSynthesizer(FastAveraging, DenseSynthesizer):
    """`DenseSynthesizer` whose heads are one kernel."""

    __slots__ = ()

    def fused(self, x: Array) -> tuple[Any, list[Parameter], tuple[Any, ...]] | None:
        kernel = self._twins.kernel("dense_heads", x)
        own = self.__dict__
        value = weights_and_biases(own["value"])
        fits = len(self.W2.value) == own["n_heads"]
        if kernel is None or value is None or not fits or has_own_scores(own):
            return None
        return kernel, [*self.in_order(), *value], (own["causal"],)


class FastFourier(Fast, Fourier):
    """`Fourier` by a kernel."""

    __slots__ = ()

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        kernel = self._twins.kernel("fourier_mixing", x)
        if kernel is None:
            return super().mix(x, context)
        y, cache = kernel[0](x, context=as_engine_context(context))
        return y, Saved(kernel[1], cache)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache) is not Saved:
            return super().mix_backward(dy, cache, gradients)
        dx: Array = cache.backward(dy, cache.cache)
        return dx


TABLE.add(Attention, FastAttention)
TABLE.add(BlockwiseAttention, FastBlockwiseAttention)
TABLE.add(DenseSynthesizer, FastDenseSynthesizer)
TABLE.add(Fourier, FastFourier)
TABLE.add_container(AttentionScores, "query", "key")
TABLE.add_container(MixtureScores, lists=("parts",))
TABLE.add_container(Mixture, "value", "output", lists=("parts",))
for mixer in (
    FactorizedDenseSynthesizer,
    RandomSynthesizer,
    FixedRandomSynthesizer,
    FactorizedRandomSynthesizer,
):
    TABLE.add_container(mixer, "value", "output")
