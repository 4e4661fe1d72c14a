"""Fast mixers: kernels for attention, for the Dense Synthesizer, and for Fourier mixing."""

from collections.abc import Sequence
from typing import Any

from npformer.core import Array, Context, Gradients, Parameter, is_host_array, value_of
from npformer.engine.fast_linear import weights_and_biases
from npformer.engine.twin_classes import TABLE, Child, Fast, Saved
from npformer.layers.pooling import finite_at_padding
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
    GeneralAttention,
    Mixture,
    MixtureScores,
    RandomSynthesizer,
)

STORE = {"auto": None, "stored": True, "blocks": False}
"""Whether a kernel stores attention weights, by `Attention.memory`; None: the kernel decides."""


KernelArguments = tuple[Sequence[Any], tuple[Any, ...]]
"""The parameters and the settings that a kernel takes."""

OVERRIDABLE = {
    "queries",
    "queries_backward",
    "keys",
    "keys_backward",
    "values",
    "values_backward",
    "normalize_and_rotate",
    "normalize_and_rotate_backward",
    "rotate",
    "attend",
    "attend_backward",
}
"""Steps of `GeneralAttention` that the kernel replaces; a user may set them on a mixer."""

OVERRIDABLE_AVERAGING = {"heads", "heads_backward", "scores", "scores_backward"}
"""The same of an `AveragingMixer`."""


class FastAveraging(Fast):
    """An `AveragingMixer` with fast layers, and a kernel, named by `kernel`, for its heads."""

    __slots__ = ()
    kernel = ""
    value = Child()
    output = Child()

    def kernel_arguments(self) -> tuple[Sequence[Parameter], tuple[Any, ...]] | None:
        """Return the parameters and settings for the kernel; None if it does not know a layer."""
        raise NotImplementedError

    def overrides_heads(self) -> bool:
        """Return whether a user has set a step on the mixer that the kernel replaces."""
        return not OVERRIDABLE_AVERAGING.isdisjoint(vars(self))

    def heads(self, x: Array, context: Context) -> tuple[Array, Any]:
        mixer: Any = self
        result = None
        drops_weights = context.training and mixer.attention_dropout > 0.0
        if not self.overrides_heads() and not drops_weights:
            arguments = self.kernel_arguments()
            if arguments is not None:
                parameters, settings = arguments
                result = self.run(self.kernel, x, parameters, *settings, context=context)
        return result or super().heads(x, context)  # type: ignore[misc]

    def heads_backward(self, dmerged: Array, cache: Any, gradients: Gradients) -> Any:
        if type(cache) is not Saved:
            return super().heads_backward(dmerged, cache, gradients)  # type: ignore[misc]
        return cache.add_gradients(dmerged, gradients)


class FastAttention(Fast, Attention):
    """`Attention` whose heads are one kernel, `attention_heads`.

    The kernel replaces three `functional.linear` and `functional.scaled_dot_product_attention`.
    """

    __slots__ = ()
    query = Child()
    key = Child()
    value = Child()
    output = Child()

    def kernel_arguments(self, x: Array, context: Context) -> KernelArguments | None:
        """Return the parameters and settings for the kernel; None if it cannot be used."""
        attributes = self.__dict__
        parameters = weights_and_biases(
            attributes["query"], attributes["key"], attributes["value"], bare=True
        )
        if parameters is None or not self._fits_device(x, parameters):
            return None
        return parameters, (attributes["n_heads"], attributes["causal"], STORE["auto"])

    def _fits_device(self, x: Array, parameters: Sequence[Any]) -> bool:
        """Return whether there is a kernel for these maps: on a GPU, square ones with biases."""
        on_host = is_host_array(x)
        return on_host or (None not in parameters and parameters[0].shape[1] == x.shape[-1])

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        arguments = self.kernel_arguments(x, context)
        if arguments is None:
            return super().forward(x, context)
        parameters, settings = arguments
        short = self._short_output(x, parameters, settings, context)
        if short is not None:
            return short, None
        x = finite_at_padding(x, context.padding)
        result = self.run("attention_heads", x, parameters, *settings, context=context)
        if result is None:
            return super().forward(x, context)
        merged, saved = result
        y, output_cache = self.output.forward(merged, context)
        return y, (saved, output_cache, context.padding)

    def _short_output(
        self, x: Array, parameters: Sequence[Any], settings: tuple[Any, ...], context: Context
    ) -> Array | None:
        """Return the output for a few short sequences at evaluation; None without a kernel."""
        kernel = self.short_kernel("short_attention", x, context)
        output = weights_and_biases(self.__dict__["output"])
        if kernel is None or output is None or None in parameters or len(settings) != 3:
            return None
        values = [parameter.value for parameter in (*parameters, *output)]
        return kernel(x, *values, n_heads=settings[0], causal=settings[1])

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if type(cache[0]) is not Saved:
            return super().backward(dy, cache, gradients)
        saved, output_cache, padding = cache
        dmerged = self.output.backward(finite_at_padding(dy, padding), output_cache, gradients)
        dx: Array = saved.add_gradients(dmerged, gradients)
        return dx

    def prefill(self, x: Array, state: State, context: Context) -> tuple[Array, State]:
        one_token = is_host_array(x) and x.shape[1] == 1 and context.padding is None
        if not one_token or self._twins.kernel("attention_heads", x) is None:
            return super().prefill(x, state, context)
        arguments = self.kernel_arguments(x, context)
        if arguments is None:
            return super().prefill(x, state, context)
        from npformer.engine.cpu.one_token import attention_of_one  # late: `kernel_tables`

        parameters, _ = arguments
        W_query, b_query, W_key, b_key, W_value, b_value = map(value_of, parameters)
        heads, state = attention_of_one(
            x,
            W_query,
            b_query,
            W_key,
            b_key,
            W_value,
            b_value,
            n_heads=self.n_heads,
            kv_heads=self.key.weight.shape[1] * self.n_heads // self.query.weight.shape[1],
            rope_theta=getattr(self, "rope_theta", None),
            state=state,
            context=context,
        )
        return self.output.forward(heads, context)[0], state


class FastGeneralAttention(FastAttention, GeneralAttention):
    """`GeneralAttention` whose heads are one kernel, `attention_heads`."""

    __slots__ = ()

    def kernel_arguments(self, x: Array, context: Context) -> KernelArguments | None:
        attributes = self.__dict__
        drops_weights = context.training and attributes["attention_dropout"] > 0.0
        has_norms = attributes["query_norm"] is not None or attributes["key_norm"] is not None
        if drops_weights or has_norms or not OVERRIDABLE.isdisjoint(attributes):
            return None
        parameters = weights_and_biases(
            attributes["query"], attributes["key"], attributes["value"], bare=True
        )
        if parameters is None or not self._fits_device(x, parameters):
            return None
        settings = attributes["n_heads"], attributes["causal"], STORE.get(attributes["memory"])
        options = attributes["rope_theta"], attributes["window"], attributes["n_kv_heads"]
        if options == (None, None, attributes["n_heads"]):
            return parameters, settings
        if not is_host_array(x):
            return None  # the GPU's kernel has only the attention of Vaswani et al. (2017)
        return parameters, (*settings, *options)


class FastBlockwiseAttention(FastGeneralAttention, BlockwiseAttention):
    """`BlockwiseAttention` whose heads are one kernel, `attention_heads`."""

    __slots__ = ()


class FastDenseSynthesizer(FastAveraging, DenseSynthesizer):
    """`DenseSynthesizer` whose heads are one kernel."""

    __slots__ = ()
    kernel = "dense_heads"

    def kernel_arguments(self) -> tuple[Sequence[Parameter], tuple[Any, ...]] | None:
        attributes = self.__dict__
        value = weights_and_biases(attributes["value"])
        if value is None or len(self.W2.value) != attributes["n_heads"]:
            return None
        return [*self.score_parameters(), *value], (attributes["causal"],)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        short = self._short_output(x, context)
        return super().forward(x, context) if short is None else (short, None)

    def _short_output(self, x: Array, context: Context) -> Array | None:
        """Return the output for a few short sequences at evaluation; None without a kernel."""
        kernel = self.short_kernel("short_dense_synthesizer", x, context)
        if kernel is None or self.overrides_heads():
            return None
        arguments, output = self.kernel_arguments(), weights_and_biases(self.__dict__["output"])
        if arguments is None or output is None:
            return None
        parameters, settings = arguments
        values = [parameter.value for parameter in (*parameters, *output)]
        return kernel(x, *values, causal=settings[0])


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
TABLE.add(GeneralAttention, FastGeneralAttention)
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
