"""Fast mixers: kernels for attention, for the Dense Synthesizer, and for Fourier mixing."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients, Parameter
from npformer.engine.fast_linear import weights_and_biases
from npformer.engine.twin_classes import TABLE, Child, Fast, Saved
from npformer.layers.state import State
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


class FastAveraging(Fast):
    """An `AveragingMixer` with fast layers in it, and the kernel of this name for its heads."""

    __slots__ = ()
    kernel = ""
    value = Child()
    output = Child()

    def fused(self) -> tuple[Sequence[Parameter], tuple[Any, ...]] | None:
        """Return the parameters and settings that the kernel takes; None if it lacks a layer."""
        raise NotImplementedError

    def fitting(self) -> tuple[Sequence[Parameter], tuple[Any, ...]] | None:
        """Return `fused`, but None if scores are set on the mixer itself."""
        own = self.__dict__
        return None if "scores" in own or "scores_backward" in own else self.fused()

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        own: Any = self
        dropped = context.training and own.attention_dropout > 0.0  # runs as written
        if not dropped and (fused := self.fitting()) is not None:
            found = self.run(self.kernel, x, fused[0], *fused[1], context=context)
            if found is not None:
                return found
        return super().heads(x, context)  # type: ignore[misc, no-any-return]

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Any:
        if type(cache) is not Saved:
            return super().heads_backward(dmerged, cache, gradients)  # type: ignore[misc]
        return cache.add_gradients(dmerged, gradients)


class FastAttention(FastAveraging, Attention):
    """`Attention` whose heads are one kernel."""

    __slots__ = ()
    kernel = "attention_heads"
    query = Child()
    key = Child()

    def fused(self) -> tuple[Sequence[Parameter], tuple[Any, ...]] | None:
        own = self.__dict__
        parameters = weights_and_biases(own["query"], own["key"], own["value"], bare=True)
        if parameters is None or own["query_norm"] is not None or own["key_norm"] is not None:
            return None
        more: tuple[Any, ...] = own["rope_theta"], own["window"], own["n_kv_heads"]
        more = () if more == (None, None, own["n_heads"]) else more
        return parameters, (own["n_heads"], own["causal"], STORE.get(own["memory"]), *more)

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        if type(x) is not np.ndarray and (fused := self.fitting()) is not None:
            parameters, settings = fused  # on a GPU the kernel knows attention as it was in 2017
            of_2017 = (
                len(settings) == len(("n_heads", "causal", "store")) and None not in parameters
            )
            if not of_2017 or self.query.weight.shape[1] != x.shape[-1]:
                return Attention.heads(self, x, context)
        return super().heads(x, context)

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        one = type(x) is np.ndarray and x.shape[1] == 1 and context.padding is None
        fused = self.fitting() if one and self._twins.kernel(self.kernel, x) else None
        if fused is None:
            return super().prefill(x, state, context)
        from npformer.engine.cpu.one_token import attention_of_one  # late, as in `kernels_of`

        values: list[Any] = [None if one is None else one.value for one in fused[0]]
        rest: Any = {"rope_theta": self.rope_theta, "state": state, "context": context}
        rest |= {"n_heads": self.n_heads, "kv_heads": self.n_kv_heads}
        heads, state = attention_of_one(x, *values, **rest)
        return self.output.forward(heads, context)[0], state


class FastBlockwiseAttention(FastAttention, BlockwiseAttention):
    """`BlockwiseAttention` whose heads are one kernel."""

    __slots__ = ()


class FastDenseSynthesizer(FastAveraging, DenseSynthesizer):
    """`DenseSynthesizer` whose heads are one kernel."""

    __slots__ = ()
    kernel = "dense_heads"

    def fused(self) -> tuple[Sequence[Parameter], tuple[Any, ...]] | None:
        own = self.__dict__
        value = weights_and_biases(own["value"])
        if value is None or len(self.W2.value) != own["n_heads"]:
            return None
        return [*self.in_order(), *value], (own["causal"],)


class FastFourier(Fast, Fourier):
    """`Fourier` by a kernel."""

    __slots__ = ()

    def mix(self, x: Array, context: Context) -> tuple[Array, Any]:
        return self.run("fourier_mixing", x, (), context=context) or super().mix(x, context)

    def mix_backward(self, dy: Array, cache: Any, gradients: Gradients) -> Any:
        if type(cache) is not Saved:
            return super().mix_backward(dy, cache, gradients)
        return cache.add_gradients(dy, gradients)


TABLE.add(Attention, FastAttention)
TABLE.add(BlockwiseAttention, FastBlockwiseAttention)
TABLE.add(DenseSynthesizer, FastDenseSynthesizer)
TABLE.add(Fourier, FastFourier)
TABLE.add_container(AttentionScores, "query", "key")
TABLE.add_container(MixtureScores, "parts")
TABLE.add_container(Mixture, "value", "output", "parts")
for mixer in (
    FactorizedDenseSynthesizer,
    RandomSynthesizer,
    FixedRandomSynthesizer,
    FactorizedRandomSynthesizer,
):
    TABLE.add_container(mixer, "value", "output")
