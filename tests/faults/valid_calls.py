"""A valid call of every public function, class and method."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import npformer as nf
from npformer import data, losses, mixers, optim
from npformer import functional as F
from npformer import layers as L
from npformer.core import Registry, generators, initializers
from npformer.models import InputEmbedding, SequenceModel
from npformer.optim import SCHEDULES
from tests.faults.slots import (
    Slot,
    an,
    anything,
    choice,
    count,
    dtype,
    flag,
    floats,
    function,
    ids,
    is_number,
    is_whole,
    mask,
    not_negative,
    number,
    or_none,
    path,
    positive,
    rate,
    seed,
    text,
)
from tests.pairs import MASKED, pairs


class Target:
    """A function, or a method of an object that `of` makes, with a valid call of it."""

    def __init__(
        self, name: str, function: Any, slots: dict[str, Slot], of: Callable[[], Any] | None = None
    ) -> None:
        self.name = name
        self.slots = slots
        self._function = function
        self._of = of

    @property
    def function(self) -> Any:
        return self._function if self._of is None else getattr(self._of(), self._function)

    def call(self, arguments: dict[str, Any]) -> Any:
        """Call the function, on an object of its own."""
        return self.function(**arguments)

    def run(self) -> Any:
        """Make the valid call."""
        return self.call({name: slot.make() for name, slot in self.slots.items()})

    def requires(self, name: str) -> bool:
        """Whether an argument has no default."""
        parameter = self._signature().get(name)
        return parameter is not None and parameter.default is inspect.Parameter.empty

    def takes_any_keyword(self) -> bool:
        return any(p.kind is p.VAR_KEYWORD for p in self._signature().values())

    @cache  # noqa: B019
    def _signature(self) -> Any:
        return inspect.signature(self.function).parameters


CALLS: list[Target] = []


def call(name: str, function: Any, /, **slots: Slot) -> None:
    CALLS.append(Target(name, function, slots))


def checked(kind: Any) -> Any:
    """Return a function that makes an estimator and checks its arguments, as `fit` does."""

    @wraps(kind)
    def make(**arguments: Any) -> Any:
        found = kind(**arguments)
        found.check()
        return found

    return make


def method(name: str, of: Callable[[], Any], /, **slots: Slot) -> None:
    """Add ``Class.method``; `of` makes the object."""
    attribute = name.rpartition(".")[2]
    CALLS.append(Target(name, attribute, slots, of))


# Numbers to work with -----------------------------------------------------------------------------


def f32(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    return rng.normal(size=shape).astype("float32")


def f64(*shape: int) -> np.ndarray:
    return f32(*shape).astype("float64")


IDS = np.array([[1, 2, 3], [4, 5, 6]])
KEEP = np.array([[True, True, True], [True, True, False]])
LABELS = np.array([0, 2])
TYPES = np.array([[0, 1, 1], [0, 0, 1]])
SIZES = {"d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 6, "max_len": 5}


def masks() -> Slot:
    """Return the masks of two inputs, of which the first has none."""
    neither = None, None
    return or_none(Slot(lambda: (None, KEEP), lambda v, _: isinstance(v, tuple) and v == neither))


def config(**changes: Any) -> nf.EncoderConfig:
    return nf.EncoderConfig(**(SIZES | changes))


def classifier(**changes: Any) -> nf.SequenceClassifier:
    return nf.SequenceClassifier(config(**changes), 3, vocab_size=7)


def of_vectors() -> nf.SequenceClassifier:
    return nf.SequenceClassifier(config(), 3, n_features=2)


def with_types() -> nf.SequenceClassifier:
    return classifier(n_token_types=2)


def text_encoder() -> nf.TextEncoder:
    return nf.TextEncoder(config(n_token_types=2), 7)


def drawn(**more: Slot) -> dict[str, Slot]:
    """Return what layers that draw weights take."""
    return {**more, "seed": seed(), "dtype": dtype()}


CONFIG = an(config, nf.EncoderConfig)
SPEC = "xavier_uniform", "xavier_normal", "he_normal", "normal", "zeros", "ones"
INITIALIZER = choice(*SPEC)

# npformer.functional ------------------------------------------------------------------------------


def of_pair(name: str, **changes: Slot) -> None:
    """Add a forward function with arguments of `tests.pairs`, and its backward function."""
    inputs, options = pairs(MASKED, "float32")[name]
    forward, backward = getattr(F, name), getattr(F, f"{name}_backward")
    names = list(inspect.signature(forward).parameters)
    values = dict(zip(names, inputs, strict=False)) | options
    slots = {key: changes.get(key) or floats(value) for key, value in values.items()}
    slots |= {key: slot for key, slot in changes.items() if key not in slots}
    call(f"functional.{name}", forward, **slots)
    y, cache = forward(*inputs, **options)
    if y.ndim:
        call(
            f"functional.{name}_backward",
            lambda dy: backward(dy, cache),
            dy=floats(y, any_dtype=True),
        )
    else:
        call(
            f"functional.{name}_backward",
            lambda dloss: backward(dloss, cache),
            dloss=Slot(lambda: 1.0, lambda v, _: is_number(v)),
        )


def given(name: str, argument: str) -> Any:
    """Return an argument of a pair."""
    inputs, options = pairs(MASKED, "float32")[name]
    names = list(inspect.signature(getattr(F, name)).parameters)
    return (dict(zip(names, inputs, strict=False)) | options)[argument]


def pair_slots() -> None:
    def x(name: str, axes: str, argument: str = "x", any_dtype: bool = False) -> Slot:
        return floats(given(name, argument), axes, any_dtype)

    def masked(name: str) -> dict[str, Slot]:
        return {"mask": mask(given(name, "mask"), "*"), "causal": flag(True)}

    of_pair("linear", x=x("linear", "*="), b=or_none(x("linear", "=", "b")))
    of_pair(
        "conv1d",
        x=x("conv1d", "ff="),
        W=x("conv1d", "f==", "W"),
        b=or_none(x("conv1d", "=", "b")),
        padding=choice("same", "valid"),
    )
    for name in ("relu", "silu", "tanh", "sigmoid"):
        of_pair(name, x=x(name, "*", any_dtype=True))
    of_pair("gelu", x=x("gelu", "*", any_dtype=True), approximate=choice("tanh", "none"))
    of_pair("layer_norm", x=x("layer_norm", "*="), eps=not_negative(0.0625))
    of_pair(
        "softmax",
        x=x("softmax", "*", any_dtype=True),
        mask=mask(given("softmax", "mask"), "*"),
        axis=Slot(lambda: -1, lambda v, _: is_whole(v), ("as np.int64",)),
    )
    query = x("attention_scores", "==f=", "query")
    of_pair("attention_scores", query=query, key=x("attention_scores", "==f=", "key"))
    of_pair(
        "average",
        scores=x("average", "*f=", "scores"),
        value=x("average", "*=f", "value"),
        **masked("average"),
        rate=rate(0.5),
        generator=or_none(
            an(lambda: np.random.default_rng(0), np.random.Generator, np.random.RandomState)
        ),
    )
    of_pair(
        "scaled_dot_product_attention",
        query=query,
        causal=flag(True),
        value=x("scaled_dot_product_attention", "===f", "value"),
    )
    of_pair(
        "blockwise_attention",
        query=x("blockwise_attention", "==f=", "query"),
        value=x("blockwise_attention", "===f", "value"),
        block=count(2),
        **masked("blockwise_attention"),
    )
    of_pair("dense_scores", x=x("dense_scores", "ff="), columns=count(3, 0))
    of_pair(
        "dense_synthesizer",
        value=x("dense_synthesizer", "===f", "value"),
        **masked("dense_synthesizer"),
    )
    of_pair("factorized_dense_scores", x=x("factorized_dense_scores", "ff="), columns=count(3, 0))
    of_pair(
        "factorized_dense_synthesizer",
        value=x("factorized_dense_synthesizer", "===f", "value"),
        **masked("factorized_dense_synthesizer"),
    )
    of_pair("random_scores", R=x("random_scores", "*ff", "R", True), length=count(3, 0))
    of_pair(
        "random_synthesizer",
        value=x("random_synthesizer", "*ff", "value"),
        R=x("random_synthesizer", "*ff", "R"),
        **masked("random_synthesizer"),
    )
    of_pair("factorized_random_scores", length=count(3, 0))
    of_pair(
        "factorized_random_synthesizer",
        value=x("factorized_random_synthesizer", "*ff", "value"),
        **masked("factorized_random_synthesizer"),
    )
    logits, *parts = pairs(MASKED, "float32")["mixture_scores"][0]
    call(
        "functional.mixture_scores",
        lambda logits, first, second: F.mixture_scores(logits, first, second),
        logits=floats(logits),
        first=floats(parts[0], "*ff"),
        second=floats(parts[1], "*ff"),
    )
    total, cache = F.mixture_scores(logits, *parts)
    call(
        "functional.mixture_scores_backward",
        lambda dscores: F.mixture_scores_backward(dscores, cache),
        dscores=floats(total, any_dtype=True),
    )
    for name in ("fourier_mixing", "hartley_mixing"):
        of_pair(name, x=x(name, "*ff", any_dtype=True))
    of_pair(
        "linear_mixing",
        x=x("linear_mixing", "ff="),
        W_sequence=x("linear_mixing", "ff", "W_sequence"),
    )
    for name in ("causal_convolution", "short_convolution"):
        # The one needs a row for each token, the other has as many as there are.
        rows = "==" if name == "causal_convolution" else "f="
        of_pair(name, x=x(name, "*f=" if rows == "f=" else "*=="), kernel=x(name, rows, "kernel"))
    of_space = {
        name: floats(given("state_space_kernel", name))
        for name in ("log_step", "log_decay", "frequency", "C")
    }
    of_pair("state_space_kernel", **of_space, length=count(3, 0, large=False))
    del of_space["C"]
    call("functional.state_space_step", F.state_space_step, **of_space)
    of_pair(
        "dropout",
        x=x("dropout", "*", any_dtype=True),
        rate=rate(0.5),
        generator=or_none(
            an(lambda: np.random.default_rng(0), np.random.Generator, np.random.RandomState)
        ),
    )
    of_pair(
        "token_dropout",
        x=x("token_dropout", "==f", any_dtype=True),
        rate=rate(0.5),
        generator=or_none(
            an(lambda: np.random.default_rng(0), np.random.Generator, np.random.RandomState)
        ),
    )
    of_pair(
        "embedding",
        ids=ids(given("embedding", "ids"), "*"),
        table=x("embedding", "ff", "table", any_dtype=True),
    )
    of_pair(
        "bag",
        ids=ids(given("bag", "ids"), "=="),
        weights=x("bag", "==", "weights"),
        table=x("bag", "ff", "table"),
    )
    of_pair(
        "mean_pooling",
        x=x("mean_pooling", "==f", any_dtype=True),
        mask=mask(given("mean_pooling", "mask")),
    )
    of_pair(
        "max_pooling",
        x=x("max_pooling", "==f", any_dtype=True),
        mask=mask(given("max_pooling", "mask")),
    )
    of_pair(
        "softmax_cross_entropy",
        logits=x("softmax_cross_entropy", "==f", "logits", any_dtype=True),
        labels=ids(given("softmax_cross_entropy", "labels")),
        label_smoothing=rate(0.25),
    )
    of_pair("binary_cross_entropy_with_logits")
    of_pair("mean_squared_error")
    scores = given("average", "scores")
    call(
        "functional.averaging_weights",
        F.averaging_weights,
        scores=floats(scores, "*ff", any_dtype=True),
        **masked("average"),
    )
    call(
        "functional.split_heads",
        F.split_heads,
        x=floats(f32(2, 3, 4), "fff", True),
        n_heads=count(2),
    )
    call("functional.merge_heads", F.merge_heads, x=floats(f32(2, 2, 3, 2), "ffff", True))


pair_slots()

# Layers -------------------------------------------------------------------------------------------


def layer(make: Callable[[], Any], x: Slot, kept: Slot | None = None, name: str = "") -> None:
    """Add the call of a layer."""
    kept = mask(KEEP) if kept is None else kept
    CALLS.append(
        Target(f"{name or type(make()).__name__}(x)", "__call__", {"x": x, "mask": kept}, make)
    )


def layers() -> None:
    init = function(initializers.xavier_uniform)
    x = floats(f32(2, 3, 4), "ff=")
    rows = floats(f32(2, 3, 4), "*=")
    shape = floats(f32(2, 3, 4), "*", any_dtype=True)
    both = floats(f32(2, 3, 4), "==f", any_dtype=True)
    any_x = anything(partial(f32, 2, 3, 4))  # its numbers do not matter
    tokens = {"d_model": count(4), "n_heads": count(2)}
    table = {**tokens, "max_len": count(5)}

    call(
        "layers.Linear",
        L.Linear,
        **drawn(d_in=count(4), d_out=count(3), bias=flag(True), init=init),
    )
    layer(partial(L.Linear, 4, 3, seed=0), rows)
    call(
        "layers.Conv1d",
        L.Conv1d,
        **drawn(d_in=count(4), d_out=count(3), kernel=count(2), padding=choice("same", "valid")),
        bias=flag(True),
        init=init,
    )
    layer(partial(L.Conv1d, 4, 3, 2, seed=0), x)
    call("layers.GELU", L.GELU, approximate=choice("none", "tanh"))
    for make in (L.ReLU, L.GELU, L.SiLU, L.Tanh):
        layer(make, shape)
    for name in ("Dropout", "TokenDropout"):
        call(f"layers.{name}", getattr(L, name), rate=rate(0.25))
    layer(partial(L.Dropout, 0.25), shape)
    layer(partial(L.TokenDropout, 0.25), floats(f32(2, 3, 4), "===", True))
    call("layers.LayerNorm", L.LayerNorm, d_model=count(4), eps=positive(0.0625), dtype=dtype())
    layer(partial(L.LayerNorm, 4), rows)
    call(
        "layers.Embedding",
        L.Embedding,
        **drawn(vocab_size=count(7), d_model=count(4), scale=flag(True)),
    )
    layer(partial(L.Embedding, 7, 4, seed=0), ids(IDS, "*"))
    sizes = {"vocab_size": count(7), "n_pairs": count(2), "n_outputs": count(3)}
    call("layers.Wide", L.Wide, **sizes, dtype=dtype())
    layer(partial(L.Wide, 7, 2, 3), ids(IDS, "*"))
    call(
        "layers.TokenTypes",
        L.TokenTypes,
        **drawn(vocab_size=count(2), d_model=count(4), scale=flag(True)),
    )
    layer(partial(L.TokenTypes, 2, 4, seed=0), floats(f32(2, 3, 4), "ff=", any_dtype=True))
    call(
        "layers.Positions",
        L.Positions,
        **drawn(
            max_len=count(5),
            d_model=count(4),
            kind=choice("learned", "sinusoidal", "sinusoidal_halves"),
            std=not_negative(0.5),
        ),
    )
    layer(partial(L.Positions, 5, 4, seed=0), x)
    call(
        "layers.PositionwiseFeedForward",
        L.PositionwiseFeedForward,
        **drawn(
            d_model=count(4),
            d_ff=count(6),
            activation=choice("relu", "gelu", "tanh", "gelu_tanh"),
            ffn=choice("linear", "conv1d"),
            initializer=INITIALIZER,
        ),
    )
    layer(partial(L.PositionwiseFeedForward, 4, 6, seed=0), rows)
    call(
        "layers.Sequential",
        lambda first, second: L.Sequential(first, second),
        first=an(L.ReLU, nf.Layer),
        second=an(L.Tanh, nf.Layer),
    )
    layer(lambda: L.Sequential(L.ReLU(), L.Tanh()), shape)
    call("layers.TimeDistributed", L.TimeDistributed, layer=an(L.ReLU, nf.Layer))
    layer(lambda: L.TimeDistributed(L.Linear(4, 3, seed=0)), floats(f32(2, 3, 4), "*f="))
    for make in (L.MeanPooling, L.MaxPooling, L.Flatten):
        layer(make, both, mask(KEEP))
    layer(L.FirstToken, both)
    layer(L.EveryToken, shape)
    for cross in (L.CrossAttention, L.BlockwiseCrossAttention):
        call(
            f"layers.{cross.__name__}",
            cross,
            **drawn(**tokens, d_memory=or_none(count(4)), initializer=INITIALIZER),
        )
    an_embedding = an(partial(L.Embedding, 7, 4, seed=0), L.Embedding)
    call("layers.TiedOutput", L.TiedOutput, embedding=an_embedding, bias=flag(True))
    layer(lambda: L.TiedOutput(L.Embedding(7, 4, seed=0)), rows)
    call("layers.Pooler", L.Pooler, **drawn(d_model=count(4)), activation=choice("relu"))
    layer(partial(L.Pooler, 4, seed=0), x)

    # Mixers
    kept = mask(KEEP)
    projections = {"causal": flag(True), "initializer": INITIALIZER}
    for mixer, memories in (
        (mixers.Attention, ("stored", "auto")),
        (mixers.BlockwiseAttention, ("blocks", "auto")),
    ):
        call(
            f"mixers.{mixer.__name__}",
            mixer,
            **drawn(**tokens, **projections, memory=or_none(choice(*memories))),
        )
        layer(partial(mixer, 4, 2, seed=0), floats(f32(2, 3, 4), "==="), kept)
    sizes = mixers.MixerSettings(4, 2, 5)
    settings = an(lambda: sizes, mixers.MixerSettings)
    for kind in (mixers.AveragingMixer, mixers.Mixture, mixers.MixtureScores):
        call(f"mixers.{kind.__name__}", kind, **drawn(settings=settings))
    for scores in mixers.SCORES.values():
        call(f"mixers.{scores.__name__}", scores, **drawn(settings=settings))
        tokens_of = any_x if "Random" in scores.__name__ else x
        layer(partial(scores, sizes, seed=0), tokens_of)
    for mixer in (
        mixers.DenseSynthesizer,
        mixers.FactorizedDenseSynthesizer,
        mixers.RandomSynthesizer,
        mixers.FixedRandomSynthesizer,
        mixers.FactorizedRandomSynthesizer,
    ):
        call(f"mixers.{mixer.__name__}", mixer, **drawn(**table, rank=count(2), **projections))
        layer(partial(mixer, 4, 2, 5, seed=0), floats(f32(2, 3, 4), "==="), kept)
    for mixer in (mixers.Fourier, mixers.Hartley):
        call(f"mixers.{mixer.__name__}", mixer, padding=choice("zero", "refuse", "per_length"))
        for way in ("zero", "per_length", "refuse"):
            layer(
                partial(mixer, way),
                floats(f32(2, 3, 4), "==f" if way != "refuse" else "fff", True),
                kept if way != "refuse" else Slot(lambda: None, lambda v, _: v is None),
                f"{mixer.__name__}, {way}",
            )
    for mixer in (mixers.LinearMixing, mixers.RandomMixing):
        call(
            f"mixers.{mixer.__name__}",
            mixer,
            **drawn(
                d_model=count(4), max_len=count(5), padding=choice("zero", "refuse", "per_length")
            ),
        )
        layer(partial(mixer, 4, 5, "per_length", seed=0), floats(f32(2, 3, 4)), kept)
    call(
        "mixers.GatedConvolution",
        mixers.GatedConvolution,
        **drawn(d_model=count(4), max_len=count(5), initializer=INITIALIZER),
    )
    layer(partial(mixers.GatedConvolution, 4, 5, seed=0), floats(f32(2, 3, 4), "==="), kept)
    call(
        "mixers.StateSpace",
        mixers.StateSpace,
        **drawn(d_model=count(4), n_states=count(2), initializer=INITIALIZER),
    )
    layer(partial(mixers.StateSpace, 4, 2, seed=0), floats(f32(2, 3, 4), "==="), kept)
    layer(mixers.Identity, floats(f32(2, 3, 4), "==f", any_dtype=True), kept)
    layer(partial(mixers.Mixture, sizes, seed=0), floats(f32(2, 3, 4), "==="), kept)
    call(
        "mixers.MixerSettings",
        mixers.MixerSettings,
        **table,
        causal=flag(True),
        padding=choice("zero", "refuse", "per_length"),
        memory=choice("auto", "stored", "blocks"),
        rank=count(2),
        mixture=anything(lambda: ("attention", "random_synthesizer")),
        initializer=INITIALIZER,
    )
    call(
        "mixers.hybrid",
        mixers.hybrid,
        n_layers=count(4),
        n_attention=count(2, 0),
        layout=choice("top", *mixers.LAYOUTS),
        mixer=text("fourier"),
        attention=text("attention"),
    )


MIXTURE = Slot(
    lambda: ("attention", "random_synthesizer"),
    lambda v, _: isinstance(v, list | tuple) and len(v) >= 2 and all(n in mixers.SCORES for n in v),
)
layers()

# Models -------------------------------------------------------------------------------------------


def models() -> None:
    call(
        "EncoderConfig",
        nf.EncoderConfig,
        d_model=count(4),
        n_layers=count(2),
        n_heads=count(2),
        d_ff=count(6),
        max_len=count(5),
        mixer=Slot(
            lambda: "attention",
            lambda v, _: (
                v in ("fourier",)
                if isinstance(v, str)
                else isinstance(v, list | tuple) and len(v) == 2
            ),
            ("as np.str_",),
        ),
        activation=choice("gelu", "relu"),
        norm=choice("pre", "post"),
        dropout=rate(0.25),
        ffn=choice("linear", "conv1d"),
        positions=choice("learned", "none", "sinusoidal", "sinusoidal_halves"),
        scale_embeddings=flag(True),
        share_layers=flag(False),
        causal=flag(False),
        padding=choice("zero", "refuse", "per_length"),
        memory=choice("auto", "stored", "blocks"),
        rank=count(2),
        mixture=MIXTURE,
        norm_eps=positive(0.0625),
        n_token_types=count(2, 0),
        embedding_norm=flag(True),
        embedding_projection=flag(False),
        initializer=INITIALIZER,
    )
    call(
        "EncoderConfig.from_dict",
        nf.EncoderConfig.from_dict,
        plain=an(lambda: config().to_dict(), dict, fits=lambda v: not v),
    )
    call("Encoder", nf.Encoder, **drawn(config=CONFIG))
    layer(lambda: nf.Encoder(config()), floats(f32(2, 3, 4), "==="), mask(KEEP))
    call(
        "EncoderBlock",
        nf.EncoderBlock,
        **drawn(config=CONFIG, mixer=choice("attention", "fourier")),
    )
    layer(lambda: nf.EncoderBlock(config(), seed=0), floats(f32(2, 3, 4), "==="), mask(KEEP))
    causal = an(lambda: config(causal=True), nf.EncoderConfig, fits=lambda c: c.causal)
    call("DecoderBlock", nf.DecoderBlock, **drawn(config=causal, d_memory=or_none(count(4))))
    call("Decoder", nf.Decoder, **drawn(config=causal, d_memory=or_none(count(4))))
    call("LanguageModel", nf.LanguageModel, **drawn(config=causal, vocab_size=count(7)))
    writes = partial(nf.LanguageModel, config(causal=True), 7, seed=0)
    method(
        "LanguageModel.generate",
        writes,
        prompt=ids(IDS, "ff"),
        n=count(3, large=False),
        temperature=not_negative(0.5),
        top_k=or_none(count(2)),
        top_p=or_none(number(0.5, lambda p: 0.0 < p <= 1.0)),
        seed=count(0, 0),
        cache=flag(True),
        stop=or_none(number(1, lambda t: is_whole(t) and 0 <= t < 7)),
        probabilities=flag(False),
    )
    call(
        "EncoderDecoder",
        nf.EncoderDecoder,
        **drawn(config=CONFIG, source_vocab=count(7), target_vocab=count(7, 3)),
        tied=flag(False),
    )
    translates = partial(nf.EncoderDecoder, config(), 7, 7, seed=0)
    method(
        "EncoderDecoder.generate",
        translates,
        source=ids(IDS, "ff"),
        max_len=count(3, large=False),
        beams=count(2, large=False),
        length_penalty=not_negative(0.5),
        mask=mask(KEEP),
    )
    one_of = {
        "vocab_size": or_none(count(7)),
        "n_features": Slot(lambda: None, lambda v, _: v is None),
    }
    call("models.InputEmbedding", InputEmbedding, **drawn(config=CONFIG, **one_of))
    for kind in (SequenceModel, nf.SequenceClassifier):
        call(
            kind.__name__,
            kind,
            **drawn(
                config=CONFIG,
                n_classes=count(3, 2),
                **one_of,
                pooling=choice("mean", "first", "flatten", "none", "pooler"),
                output=choice("softmax", "mean_squared_error"),
            ),
        )
    types = or_none(ids(TYPES))
    inputs = {"x": ids(IDS), "mask": mask(KEEP), "types": types}
    vectors = {"x": floats(f32(2, 3, 2)), "mask": mask(KEEP)}
    many = {"batch_size": count(2), "processes": flag(False, "auto")}
    CALLS.append(Target("SequenceClassifier(x)", "__call__", inputs, with_types))
    CALLS.append(Target("SequenceClassifier(vectors)", "__call__", vectors, of_vectors))
    for name in ("predict", "predict_probabilities"):
        method(f"SequenceClassifier.{name}", with_types, **inputs, **many)
    method("SequenceClassifier.explain", with_types, **inputs)
    raw = {
        "config": or_none(an(config, nf.EncoderConfig, Mapping)),
        "max_len": or_none(count(8)),
        "pooling": or_none(choice("mean", "first", "flatten", "none", "pooler")),
        "members": or_none(count(1)),
        "seed": count(0, 0),
        "dtype": dtype(),
        "backend": choice("numpy", "cupy"),
    }
    call("SeriesClassifier", checked(nf.SeriesClassifier), **raw, scale=flag(True))
    call(
        "TextClassifier",
        checked(nf.TextClassifier),
        **raw,
        tokenizer=choice("word", "wordpiece", "bpe"),
        vocab_size=or_none(count(9)),
        min_count=or_none(count(1)),
        lower=or_none(flag(True)),
        ngrams=or_none(count(4, 0)),
    )
    of_writers = {name: raw[name] for name in ("config", "seed", "dtype", "backend") if name in raw}
    writing = {"vocab_size": count(99)}
    call(
        "TextWriter",
        checked(nf.TextWriter),
        **of_writers,
        tokenizer=choice("char", "word", "bpe"),
        **writing,
        tied=flag(True),
    )
    call(
        "TextTranslator",
        checked(nf.TextTranslator),
        **of_writers,
        tokenizer=choice("auto", "char", "word", "bpe"),
        **writing,
        max_len=or_none(count(9)),
    )
    step = {
        "y": ids(LABELS),
        "workers": count(1, words=("auto",)),
        "micro_batch": or_none(count(1)),
        "label_smoothing": rate(0.25),
        "seed": or_none(seed()),
    }
    method("SequenceClassifier.loss_and_gradients", with_types, **inputs, **step)
    method(
        "SequenceClassifier.loss_and_gradients",
        of_vectors,
        **vectors,
        y=ids(LABELS),
        loss=or_none(an(losses.SoftmaxCrossEntropy, losses.Loss)),
    )
    method("SequenceClassifier.to", classifier, backend=choice("numpy"))
    call(
        "TextEncoder",
        nf.TextEncoder,
        **drawn(config=CONFIG, vocab_size=count(7), pooler=flag(True)),
    )
    CALLS.append(Target("TextEncoder(x)", "__call__", inputs, text_encoder))
    call(
        "published.KerasFeedForward",
        nf.published.KerasFeedForward,
        **drawn(
            d_model=count(4),
            d_ff=count(6),
            dropout=rate(0.25),
            ffn=choice("conv1d", "linear"),
            eps=positive(0.0625),
        ),
    )
    call(
        "published.benchmark_model",
        nf.published.benchmark_model,
        **drawn(length=count(3), d_model=count(4), d_ff=count(6), ffn=choice("conv1d", "linear")),
    )
    call(
        "published.benchmark_loss_and_gradients",
        nf.published.benchmark_loss_and_gradients,
        model=an(lambda: nf.published.benchmark_model(3, 4, 6), nf.Layer),
        x=floats(f32(2, 3, 4)),
        y=ids(np.array([0, 1])),
    )
    call(
        "published.AskersSynthesizer",
        nf.published.AskersSynthesizer,
        **drawn(length=count(3), d_model=count(4)),
    )
    CALLS.append(
        Target(
            "AskersSynthesizer(x)",
            "__call__",
            {"a": floats(f32(2, 3, 4), "*f="), "b": floats(f32(2, 3, 4), "*=f"), "mask": masks()},
            partial(nf.published.AskersSynthesizer, 3, 4, seed=0),
        )
    )
    call(
        "published.BlogFNetBlock",
        nf.published.BlogFNetBlock,
        **drawn(d_model=count(4), d_ff=count(6), dropout=rate(0.25)),
    )
    call(
        "published.blog_fnet",
        nf.published.blog_fnet,
        **drawn(d_model=count(4), d_ff=count(6), dropout=rate(0.25), n_layers=count(2)),
    )


models()

# Losses and optim ---------------------------------------------------------------------------------


def learning() -> None:
    def check(loss: Any, answers: tuple[int, ...], n_classes: int, y: Any) -> Any:
        return loss.check(y, answers, max(n_classes, 2))

    for kind, outputs, y in (
        (losses.SoftmaxCrossEntropy, f32(2, 3), LABELS),
        (losses.BinaryCrossEntropy, f32(2, 1), np.array([0, 1])),
        (losses.MeanSquaredError, f32(2, 3), f32(2, 3)),
    ):
        name = kind.__name__
        target = floats(y) if kind is losses.MeanSquaredError else ids(y)
        if kind is not losses.MeanSquaredError:
            call(f"losses.{name}", kind, label_smoothing=rate(0.25))
        any_outputs = floats(
            outputs,
            "=f" if kind is losses.SoftmaxCrossEntropy else "",
            any_dtype=kind is not losses.MeanSquaredError,
        )
        method(f"{name}.forward", kind, outputs=any_outputs, y=target)
        method(f"{name}.measure", kind, outputs=any_outputs, y=target)
        answers = y.shape[:1]
        any_target = floats(y, any_dtype=True) if y.dtype.kind == "f" else target
        call(f"{name}.check", partial(check, kind(), answers, outputs.shape[1]), y=any_target)
        if kind is not losses.MeanSquaredError:
            method(
                f"{name}.probabilities",
                kind,
                outputs=floats(outputs, "*f" if outputs.shape[1] == 3 else "*=", any_dtype=True),
            )
    parameters = Slot(lambda: {"w": f32(3), "b": f32(2)}, lambda v, _: False)
    both = Slot(lambda: {"w": f32(3), "b": f32(2)}, lambda v, _: False)
    betas = Slot(lambda: (0.5, 0.75), lambda v, _: False)
    schedule = or_none(
        Slot(
            lambda: "constant",
            lambda v, _: callable(v) or (isinstance(v, str) and v == "constant"),
            ("as np.str_",),
        )
    )
    call(
        "Adam",
        nf.Adam,
        parameters=parameters,
        lr=positive(0.25),
        betas=betas,
        eps=positive(0.25),
        weight_decay=not_negative(0.25),
        schedule=schedule,
    )
    method("Adam.step", lambda: nf.Adam({"w": f32(3), "b": f32(2)}), gradients=both)
    call(
        "SGD",
        nf.SGD,
        parameters=parameters,
        lr=positive(0.25),
        momentum=Slot(lambda: 0.5, lambda v, _: is_number(v) and 0.0 < v < 1.0),
        nesterov=flag(True),
        schedule=schedule,
    )
    method("SGD.step", lambda: nf.SGD({"w": f32(3), "b": f32(2)}, 0.25), gradients=both)
    method(
        "Adam.step",
        lambda: nf.Adam(classifier().parameters()),
        gradients=Slot(lambda: nf.Gradients(classifier()), lambda v, _: False),
    )
    call("clip_by_global_norm", nf.clip_by_global_norm, gradients=both, max_norm=positive(0.25))
    call("optim.global_norm", optim.global_norm, gradients=both)
    call("optim.schedule_of", optim.schedule_of, schedule=schedule)
    call("optim.warmup_inverse_sqrt", optim.warmup_inverse_sqrt, warmup=count(10))
    call(
        "optim.cosine",
        optim.cosine,
        total=count(10),
        warmup=count(2, 0),
        final=number(0.25, lambda v: v >= 0.0),
    )
    call("Gradients", nf.Gradients, layer=an(classifier, nf.Layer, nf.Parameters))


learning()

# Data ---------------------------------------------------------------------------------------------

call("data.digits", data.digits, split=choice("ordered", "stratified"), dtype=dtype())
call("data.vowels", data.vowels, dtype=dtype())
share = number(0.25, lambda v: 0.0 < v < 1.0)
call("data.pairs", data.pairs, name=choice("reversal", "sort", "add"), n=count(9), seed=seed())
call("data.sentences", data.sentences, seed=seed(), test=share, repeated=flag(False))
for task, sizes in (
    (data.reverse, {"length": count(4), "symbols": count(3)}),
    (data.majority, {"length": count(5)}),
    (data.recall, {"pairs": count(3), "keys": count(5)}),
    (data.pointer, {"length": count(4), "symbols": count(3)}),
    (data.parity, {"length": count(5)}),
):
    call(f"data.{task.__name__}", task, seed=seed(), train=count(5), **sizes)

# Looking inside, proof, interop -------------------------------------------------------------------


def proof() -> None:
    model = an(with_types, nf.Layer, fits=lambda v: False)
    inputs = {"layer": model, "x": ids(IDS), "mask": mask(KEEP)}
    call("summary", nf.summary, **inputs)
    call("trace", nf.trace, **inputs, types=or_none(ids(TYPES)))
    started = inputs | {"types": or_none(ids(TYPES))}
    call("trace with labels", nf.trace, **started, labels=or_none(ids(LABELS)))
    call("trace with dy", nf.trace, **started, dy=or_none(floats(f32(2, 3), any_dtype=True)))
    call("explain", nf.explain, **inputs, types=or_none(ids(TYPES)))
    plain = {
        "layer": an(partial(L.Linear, 4, 3, seed=0), nf.Layer),
        "x": floats(f32(2, 3, 4), "*="),
        "mask": mask(KEEP),
    }
    for look in (nf.summary, nf.trace, nf.explain):
        call(f"{look.__name__} of a layer", look, **plain)
    asker = partial(nf.published.AskersSynthesizer, 3, 4, seed=0)
    pair = Slot(lambda: (f32(2, 3, 4), f32(2, 3, 4)), lambda v, _: False)
    two = {"layer": an(asker, nf.Layer, fits=lambda v: False), "x": pair, "mask": masks()}
    for look in (nf.summary, nf.trace, nf.explain):
        call(f"{look.__name__} of a layer with two inputs", look, **two)
    numbers = {
        "seed": count(0, 0),
        "tolerance": positive(2.0**-20),
        "complex_tolerance": or_none(positive(2.0**-30)),
        "max_entries": count(4, 0),
        "directions": count(2, large=False),
    }

    def layer_check(target: Any, x: Any, **options: Any) -> Any:
        return nf.gradcheck(target, x, **options)

    def pair_check(target: Any, x: Any, W: Any, **options: Any) -> Any:
        return nf.gradcheck(target, x, W, **options)

    wide = partial(mixers.Attention, 4, 2, seed=0, dtype="float64")
    call(
        "gradcheck of a layer",
        layer_check,
        target=an(wide, nf.Layer, fits=lambda v: False),
        x=floats(f64(2, 3, 4)),
        mask=mask(KEEP),
        training=flag(False),
        **numbers,
    )

    def two_check(target: Any, a: Any, b: Any, **options: Any) -> Any:
        return nf.gradcheck(target, a, b, **options)

    call(
        "gradcheck of a layer with two inputs",
        two_check,
        target=an(partial(asker, dtype="float64"), nf.Layer, fits=lambda v: False),
        a=floats(f64(2, 3, 4)),
        b=floats(f64(2, 3, 4), "==f"),
        mask=masks(),
        training=flag(False),
        **numbers,
    )
    call(
        "gradcheck of a pair",
        pair_check,
        target=an(lambda: (F.linear, F.linear_backward), tuple, fits=lambda v: False),
        x=floats(f64(2, 4), "*="),
        W=floats(f64(4, 3), "=f"),
        wrt=or_none(Slot(lambda: ["x", "W"], lambda v, _: isinstance(v, list | tuple) and not v)),
        **numbers,
    )
    tokens = partial(
        nf.SequenceClassifier, config(n_token_types=2), 3, vocab_size=7, dtype="float64"
    )
    call(
        "gradcheck of a model",
        layer_check,
        target=an(tokens, nf.Layer, fits=lambda v: False),
        x=ids(IDS),
        mask=mask(KEEP),
        types=or_none(ids(TYPES)),
        training=flag(True),
        max_entries=count(1, 0),
        directions=count(1, large=False),
    )


proof()

HF = {
    "vocab_size": 7,
    "hidden_size": 4,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 6,
    "max_position_embeddings": 5,
    "model_type": "bert",
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.25,
    "attention_probs_dropout_prob": 0.25,
    "layer_norm_eps": 0.0625,
}


def foreign(kind: str) -> nf.TextEncoder:
    settings = config(
        n_token_types=2,
        positions="learned",
        scale_embeddings=False,
        embedding_norm=True,
        embedding_projection=kind == "fnet",
        mixer="attention" if kind == "bert" else "fourier",
        activation="gelu",
        n_heads=2 if kind == "bert" else 1,
    )
    return nf.TextEncoder(settings, 7)


def interop() -> None:
    for kind in ("bert", "fnet"):
        to, of = getattr(nf.interop, f"to_{kind}"), getattr(nf.interop, f"from_{kind}")
        state = to(foreign(kind))
        hf = HF | {"model_type": kind}
        more = {"padding": choice("zero", "refuse", "per_length")} if kind == "fnet" else {}
        call(
            f"interop.from_{kind}",
            of,
            state=Slot(lambda state=state: dict(state), lambda v, _: False),
            hf_config=Slot(lambda hf=hf: dict(hf), lambda v, _: False),
            **more,
        )
        call(
            f"interop.to_{kind}",
            to,
            encoder=an(partial(foreign, kind), nf.TextEncoder),
            arrays=or_none(
                Slot(lambda kind=kind: dict(foreign(kind).parameters()), lambda v, _: False)
            ),
        )

        def with_setting(
            setting: str, value: Any, of: Any = of, state: Any = state, hf: Any = hf
        ) -> Any:
            return of(dict(state), {**hf, setting: value})

        for setting in HF:
            of_attention = ("num_attention_heads", "attention_probs_dropout_prob")
            if setting == "model_type" or (kind == "fnet" and setting in of_attention):
                continue
            value = hf[setting]
            slot = (
                count(value)
                if isinstance(value, int)
                else rate(value)
                if isinstance(value, float)
                else choice(value)
            )
            if setting == "layer_norm_eps":
                slot = positive(value)
            call(f"interop.from_{kind} with {setting}", partial(with_setting, setting), value=slot)
        for name in list(state)[:3] + list(state)[-1:]:

            def with_array(
                value: Any, name: str = name, of: Any = of, state: Any = state, hf: Any = hf
            ) -> Any:
                return of({**state, name: value}, dict(hf))

            call(f"interop.from_{kind} with {name}", with_array, value=floats(state[name]))


interop()


def word_vectors() -> None:
    def file() -> Path:
        place = Path("vectors.txt").absolute()
        place.write_text("a 1 2 3 4\nb 5 6 7 8\n", "utf-8")
        return place

    def texts(v: Any, _: Any) -> bool:
        if isinstance(v, np.ndarray):
            return v.ndim > 0 and len(v) == 0
        several = isinstance(v, list | tuple | dict | set) and len(v) < 8
        return several and all(isinstance(word, str) for word in v)

    def ids_of(v: Any, _: Any) -> bool:
        return texts(v, _) and not isinstance(v, set | np.ndarray) and not (v and v != {"a": 1})

    words = Slot(lambda: ["a", "c"], texts)
    call("interop.read_word_vectors", nf.interop.read_word_vectors, path=path(file), words=words)
    call(
        "interop.set_word_vectors",
        nf.interop.set_word_vectors,
        model=an(classifier, nf.SequenceClassifier, nf.TextEncoder),
        words=Slot(lambda: ["a", "b", "c"], ids_of),
        vectors=an(lambda: {"a": np.ones(4)}, dict, fits=lambda v: "a" not in v),
    )


word_vectors()


def pretrained() -> None:
    def folder() -> Path:
        place = Path("pretrained").absolute()
        if not place.exists():
            nf.interop.save_pretrained(foreign("bert"), place)
            words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c")
            (place / "vocab.txt").write_text("\n".join(words), "utf-8")
        return place

    def encoder() -> Any:
        return nf.from_pretrained(folder())

    call(
        "from_pretrained",
        nf.from_pretrained,
        folder=path(folder),
        dtype=or_none(dtype()),
        pooling=or_none(choice("first", "mean", "max")),
        normalize=or_none(flag(True)),
        max_len=or_none(count(4, 3)),
        padding=choice("zero", "refuse", "per_length"),
    )
    method(
        "PretrainedEncoder.classifier",
        encoder,
        n_classes=count(3, 2, large=False),
        pooling=or_none(choice("mean", *nf.layers.POOLINGS)),
        output=choice("softmax", *losses.LOSSES),
        dropout=or_none(rate(0.25)),
        seed=seed(),
    )
    written: dict[str, Slot] = {
        "folder": path(lambda: Path("written").absolute()),
        "classes": or_none(Slot(lambda: ["x", "y", "z"], lambda v, _: np.shape(v) == (3,))),
        "head": flag(True),
        "overwrite": flag(True),
    }
    model = an(lambda: encoder().classifier(3), nf.SequenceClassifier)
    method("PretrainedEncoder.save", encoder, model=model, **written)
    named = {"architecture": or_none(choice("roberta", *nf.interop.ARCHITECTURES))}
    call("interop.save_pretrained", nf.interop.save_pretrained, model=model, **written, **named)
    if find_spec("tokenizers") is None:  # of the extra "text"
        return

    def are_texts(v: Any, _: Any) -> bool:
        one_axis = isinstance(v, list | tuple) or (isinstance(v, np.ndarray) and v.ndim == 1)
        return one_axis and all(isinstance(text, str) for text in v)

    texts = Slot(lambda: ["a", "c"], are_texts)
    method("PretrainedEncoder.encode", encoder, texts=texts, max_len=or_none(count(4, 3)))
    for name in ("embed", "hidden"):
        method(f"PretrainedEncoder.{name}", encoder, texts=texts, batch_size=count(2))


pretrained()


def onnx() -> None:
    if find_spec("onnx") is None:  # of the extra "onnx"
        return
    call(
        "interop.to_onnx",
        nf.interop.to_onnx,
        model=an(with_types, nf.SequenceClassifier, nf.LanguageModel),
        path=path(lambda: Path("model.onnx").absolute()),
        mask=or_none(flag(True)),
        types=or_none(flag(True)),
    )


onnx()

# Training and files -------------------------------------------------------------------------------


def training() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(7, size=(6, 3)), rng.integers(3, size=6)
    keep = np.arange(3) < rng.integers(1, 4, size=6)[:, None]
    samples = Slot(lambda: (x.copy(), y.copy(), keep.copy()), lambda v, _: False)

    def share(v: Any, _: Any) -> bool:
        return is_number(v) and 0.1 <= v < 1.0

    def numbers(v: Any, n: int) -> bool:
        several = isinstance(v, list | tuple | np.ndarray | memoryview)
        if not several or np.shape(v) != (n,) or np.asarray(v).dtype.kind not in "iuf":
            return False
        found = np.asarray(v).astype("float64")
        return bool((found >= 0.0).all() and 0.0 < found.sum() < 1e30)

    def of_samples(v: Any, _: Any) -> bool:
        return numbers(v, 6)

    def of_classes(v: Any, _: Any) -> bool:
        return (v == "balanced" if isinstance(v, str) else numbers(v, 3)) or v == {}

    def picture() -> Path:
        return Path("curve.png").absolute()

    samples_or_share = Slot(samples.make, share)
    model = an(classifier, nf.SequenceClassifier)
    loss = or_none(an(losses.SoftmaxCrossEntropy, losses.Loss))
    many = {"batch_size": count(2), "processes": flag(False, "auto")}
    fit = partial(nf.fit, progress=False, workers=1, processes=False, epochs=1, batch_size=4)
    short = {"model": model, "data": samples}
    call(
        "fit",
        fit,
        **short,
        validation=or_none(samples_or_share),
        sample_weight=or_none(Slot(lambda: np.arange(6.0), of_samples)),
        class_weight=or_none(Slot(lambda: "balanced", of_classes)),
        metric=choice("accuracy", "macro_f1", "balanced_accuracy", "loss"),
        accumulate=count(2),
        epochs=count(1, large=False),
        batch_size=count(4),
        clip_norm=or_none(positive(0.5)),
        patience=or_none(count(1)),
        seed=seed(),
        micro_batch=or_none(count(2)),
        check_every=or_none(count(1)),
        masks=choice("host", "device"),
        batches=choice("auto", "shuffled", "cut", "by_length"),
        on_interrupt=choice("raise", "return"),
        precision=or_none(choice("float32")),
        progress=flag(False),
        workers=count(1, words=("auto",)),
        processes=flag(False, "auto"),
        lr=or_none(positive(0.25)),
        weight_decay=or_none(not_negative(0.25)),
        schedule=or_none(Slot(lambda: "constant", lambda v, _: callable(v))),
        label_smoothing=rate(0.25),
        callbacks=Slot(lambda: [], lambda v, _: isinstance(v, list | tuple) and not v),
    )
    call(
        "fit with a loss",
        fit,
        **short,
        loss=loss,
        optimizer=Slot(lambda: None, lambda v, _: v is None),
    )
    weights = or_none(Slot(lambda: np.arange(6.0), of_samples))
    call("evaluate", nf.evaluate, **short, loss=loss, sample_weight=weights, **many)
    call(
        "predict_to_file",
        nf.predict_to_file,
        path=path(lambda: Path("predicted.npy").absolute()),
        model=model,
        x=ids(x),
        mask=mask(keep),
        kind=choice("probabilities", "labels", "outputs"),
        **many,
    )

    def shards() -> str:
        for k in range(2):
            np.save(f"shard-{k}.npy", np.arange(3))
        return str(Path("shard-*.npy").absolute())

    call("data.sharded", data.sharded, files=Slot(shards, lambda v, _: False))
    call("History.plot", nf.History([1.0], lr=[0.1]).plot, path=or_none(path(picture)))

    def froze(do: str, pattern: Any) -> Any:
        return getattr(classifier().freeze("embed.*"), do)(pattern)

    pattern = choice("embed.*", "*", "classify.weight")
    for do in ("freeze", "unfreeze"):
        call(f"Layer.{do}", partial(froze, do), pattern=pattern)

    def some(v: Any, _: Any) -> bool:
        return v in ([0], [1], [0, 1]) if isinstance(v, list) else is_whole(v) and 1 <= v <= 16

    def empty(v: Any, _: Any) -> bool:
        return isinstance(v, dict) and not v

    call(
        "report",
        nf.report,
        model=an(classifier, nf.SequenceClassifier),
        x=ids(IDS),
        y=ids(LABELS),
        mask=mask(KEEP),
        path=path(lambda: Path("report.html").absolute()),
        samples=Slot(lambda: 2, some, ("as np.int64",)),
        token_names=or_none(Slot(lambda: [*"abcdefg"], empty)),
        class_names=or_none(Slot(lambda: ["x", "y", "z"], empty)),
        title=text("A title"),
        notes=or_none(Slot(lambda: {"model": "a note"}, empty)),
        batch_size=count(2, large=False),
    )

    def with_data(x: Any, y: Any, mask: Any, run: Any) -> Any:
        return run(classifier(), (x, y, mask))

    for run in (fit, nf.evaluate):
        name = "fit" if run is fit else "evaluate"
        call(f"{name} with data", partial(with_data, run=run), x=ids(x), y=ids(y), mask=mask(keep))
    reason = Slot(lambda: "time is up", lambda v, _: isinstance(v, str) and bool(v))

    def stop(reason: Any) -> Any:
        state = nf.TrainingState(classifier(), nf.Adam({"w": f32(3)}), nf.History(), 1, 1)
        return state.stop(reason)

    call("TrainingState.stop", stop, reason=reason)

    def saved(name: str = "model.safetensors") -> Path:
        place = Path(name).absolute()
        if not place.exists():
            nf.save(classifier(), place, notes={"a": 1})
        return place

    notes = or_none(
        Slot(
            lambda: {"a": 1},
            lambda v, _: isinstance(v, dict) and all(isinstance(k, str) for k in v),
        )
    )
    call(
        "save",
        nf.save,
        model=an(classifier, nf.SequenceClassifier),
        path=path(lambda: Path("new.safetensors").absolute()),
        notes=notes,
    )
    call("load", nf.load, path=path(saved), backend=choice("numpy"), force=flag(False))
    call("read_notes", nf.read_notes, path=path(saved), force=flag(False))

    def folder(name: str) -> Path:
        return Path(name).absolute()

    def trained() -> Path:
        place = folder("trained")
        if not place.exists():
            model = classifier()
            nf.save_checkpoint(place, model, nf.Adam(model.parameters()))
        return place

    def save_in(folder: Any, generators: Any, history: Any, notes: Any) -> None:
        model = classifier()
        optimizer = nf.Adam(model.parameters())
        nf.save_checkpoint(
            folder, model, optimizer, generators=generators, history=history, notes=notes
        )

    def save_model(model: Any) -> None:
        parameters = (
            model.parameters() if isinstance(model, nf.Layer) else classifier().parameters()
        )
        nf.save_checkpoint(folder("own"), model, nf.Adam(parameters))

    def save_optimizer(optimizer: Any) -> None:
        model = classifier()
        nf.save_checkpoint(
            folder("own"),
            model,
            nf.Adam(model.parameters()) if isinstance(optimizer, nf.Adam) else optimizer,
        )

    generators = Slot(
        lambda: {"shuffle": np.random.default_rng(0)},
        lambda v, _: isinstance(v, dict) and not v,
        optional=True,
    )
    call(
        "save_checkpoint",
        save_in,
        folder=path(partial(folder, "own")),
        generators=generators,
        history=or_none(an(nf.History, nf.History)),
        notes=notes,
    )
    call(
        "save_checkpoint of a model",
        save_model,
        model=an(classifier, nf.SequenceClassifier),
    )
    call(
        "save_checkpoint of an optimizer",
        save_optimizer,
        optimizer=an(lambda: nf.Adam(classifier().parameters()), nf.Adam),
    )
    call(
        "load_checkpoint",
        nf.load_checkpoint,
        folder=path(trained),
        schedule=or_none(
            Slot(
                lambda: "constant",
                lambda v, _: callable(v) or (isinstance(v, str) and v == "constant"),
            )
        ),
    )
    call(
        "fit with a checkpoint",
        fit,
        **short,
        checkpoint=or_none(path(partial(folder, "run"))),
        every=count(1),
        resume=flag(True),
    )


training()

# Arrays, parameters, tables -----------------------------------------------------------------------


def core() -> None:
    numbers = Slot(
        lambda: [[1.0, 2.0]],
        lambda v, _: isinstance(v, np.ndarray | np.generic) or np.asarray(v).dtype.kind in "biufc",
    )
    call("asarray", nf.asarray, x=numbers, backend=choice("numpy"))
    call("to_numpy", nf.to_numpy, x=numbers)
    call("use_kernels", nf.use_kernels, enabled=flag(True))
    call(
        "use_precision",
        nf.use_precision,
        precision=choice("float32"),
        backend=choice("numpy", "cupy"),
    )
    call(
        "Context",
        nf.Context,
        training=flag(True),
        generator=or_none(
            an(lambda: np.random.default_rng(0), object, fits=lambda v: hasattr(v, "random"))
        ),
        mask=mask(KEEP, "ff"),
        types=or_none(ids(TYPES, "ff")),
        keep=flag(True),
        padding=Slot(lambda: None, lambda v, _: v is None),
        memory_mask=mask(KEEP, "ff"),
        memory_types=or_none(ids(TYPES, "ff")),
        memory_padding=Slot(lambda: None, lambda v, _: v is None),
    )
    call(
        "Parameter",
        nf.Parameter,
        value=floats(f32(2, 3), "*", any_dtype=True),
        trainable=flag(True),
    )
    named = Slot(lambda: {"w": nf.Parameter(f32(3))}, lambda v, _: isinstance(v, dict) and not v)
    call("Parameters", nf.Parameters, named=named)

    def add(gradient: Any) -> Any:
        layer = L.Linear(2, 3, seed=0)
        gradients = nf.Gradients(layer)
        gradients.add(layer.weight, gradient)
        return gradients

    call("Gradients.add", add, gradient=floats(f32(2, 3), any_dtype=True))
    method("Layer.to", partial(L.Linear, 2, 3, seed=0), backend=choice("numpy"))
    call("fast", nf.fast, model=an(classifier, nf.Layer))
    call("generators.from_seed", generators.from_seed, seed=seed())
    call("initializers.normal", initializers.normal, std=not_negative(0.5))
    table = partial(Registry, "shape", {"box": lambda width=1: width})
    method(
        "Registry.register",
        table,
        name=Slot(lambda: "mine", lambda v, _: isinstance(v, str) and v.isidentifier()),
        builder=or_none(function(lambda: 1)),
    )
    method("Registry.parse", table, spec=choice("box"))
    method("Registry.make", table, spec=choice("box"))
    method("Registry.filled", table, spec=choice("box"))
    for registry in (
        nf.MIXERS,
        L.ACTIVATIONS,
        L.POOLINGS,
        L.FFNS,
        losses.LOSSES,
        SCHEDULES,
        initializers.INITIALIZERS,
    ):
        method(
            f"{registry.table}.parse",
            lambda registry=registry: registry,
            spec=choice(next(iter(registry))),
        )


core()
