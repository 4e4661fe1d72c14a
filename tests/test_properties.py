"""What must hold for any shape and any numbers: found by searching, not by choosing.

Each example is a world of small sizes (a length, a batch, a head of 1; primes; more keys than
queries), of numbers (ordinary, 1e4, 1e-30; all 0, all alike, a single spike) and of padding, whole
sequences of it included. The search is the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer.mixers import MIXERS, AveragingMixer, MixerSettings

pytest.importorskip(
    "hypothesis",
    reason='these tests search with hypothesis: python -m pip install "npformer[test]"',
)
from hypothesis import given, settings
from hypothesis import strategies as st

SIZES = st.sampled_from([1, 2, 3, 5, 7])
NUMBERS = st.sampled_from(["ordinary", "huge", "tiny", "zeros", "constant", "spike"])
ALIKE = 1e-3
"""float32 and float64 agree to this, relative to the largest entry, on numbers of usual size."""


def searched(max_examples: int) -> settings:
    """Return settings under which every run looks at the same examples."""
    return settings(derandomize=True, deadline=None, database=None, max_examples=max_examples)


@dataclass(frozen=True)
class World:
    """Sizes, numbers and padding of one example."""

    batch: int
    length: int
    keys: int
    n_heads: int
    d_head: int
    others: int
    numbers: str
    causal: bool
    padded: bool
    seed: int

    @property
    def d_model(self) -> int:
        return self.n_heads * self.d_head

    @property
    def comparable(self) -> bool:
        """Whether rounding stays small: where all is alike, gradients are 0 and the rest noise."""
        return self.numbers in ("ordinary", "zeros", "spike")

    @property
    def mask(self) -> np.ndarray | None:
        """Padding of any length: a whole sequence may be padding."""
        if not self.padded:
            return None
        lengths = np.random.default_rng(self.seed + 1).integers(0, self.length + 1, self.batch)
        return np.arange(self.length) < lengths[:, None]

    def artist(self, dtype: str) -> Any:
        """Return draw(*shape); the numbers of float32 and float64 are exactly the same."""
        rng = np.random.default_rng(self.seed)

        def draw(*shape: int) -> np.ndarray:
            x = rng.normal(size=shape)
            if self.numbers == "zeros":
                x[...] = 0.0
            elif self.numbers == "constant":
                x[...] = 1.5
            elif self.numbers == "spike":
                x[...] = 0.0
                x.flat[rng.integers(x.size)] = 3.0
            x *= {"huge": 1e4, "tiny": 1e-30}.get(self.numbers, 1.0)
            return x.astype("float32").astype(dtype)

        return draw


WORLDS = st.builds(
    World,
    batch=st.integers(1, 3),
    length=SIZES,
    keys=SIZES,
    n_heads=st.integers(1, 3),
    d_head=st.integers(1, 3),
    others=SIZES,
    numbers=NUMBERS,
    causal=st.booleans(),
    padded=st.booleans(),
    seed=st.integers(0, 99),
)


def assert_finite(*arrays: np.ndarray) -> None:
    for array in arrays:
        assert np.isfinite(array).all()


def assert_alike(single: tuple[np.ndarray, ...], double: tuple[np.ndarray, ...]) -> None:
    """float32 is float64 up to rounding; a gradient that is 0 by nature is small beside others."""
    largest = max(1e-3, *(float(np.abs(array).max(initial=0.0)) for array in double))
    for a, b in zip(single, double, strict=True):
        np.testing.assert_allclose(a / largest, b / largest, rtol=0, atol=ALIKE)


# Pairs of functions -------------------------------------------------------------------------------


def pairs(world: World, dtype: str) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return {name: (inputs, options)} for every pair; the last option may be what has no
    gradient."""
    w, draw, rng = world, world.artist(dtype), np.random.default_rng(world.seed)
    mask = w.mask
    over_queries = None if mask is None else mask[:, None, None, :]
    x = draw(w.batch, w.length, w.d_model)
    by_head = lambda n: draw(w.batch, w.n_heads, n, w.d_head)  # noqa: E731
    query, key, value, far_value = (by_head(n) for n in (w.length, w.keys, w.length, w.keys))
    scores = draw(w.batch, w.n_heads, w.length, w.length)
    max_len = w.length + w.others

    def maps(columns: int) -> tuple[np.ndarray, ...]:
        return (
            draw(w.d_model, w.d_model),
            draw(w.d_model),
            draw(w.n_heads, w.d_head, columns),
            draw(w.n_heads, columns),
        )

    two_maps = (*maps(w.length), *maps(2))
    masked = {"mask": over_queries, "causal": w.causal}
    padding = {"mask": None if mask is None else mask[..., None]}
    crossed = {"causal": w.causal}
    R, R1, R2 = (draw(w.n_heads, max_len, n) for n in (max_len, w.others, w.others))
    labels = rng.integers(-1, w.others, (w.batch, w.length))
    targets = rng.random((w.batch, w.others)).astype(dtype)
    kernel = draw(w.keys, w.d_model, w.others)
    return {
        "linear": ((x, draw(w.d_model, w.others), draw(w.others)), {}),
        "conv1d": ((x, kernel, draw(w.others)), {}),
        "relu": ((x,), {}),
        "gelu": ((x,), {"approximate": "tanh" if w.causal else "none"}),
        "tanh": ((x,), {}),
        "sigmoid": ((x,), {}),
        "layer_norm": ((x, draw(w.d_model), draw(w.d_model)), {}),
        "softmax": ((x,), padding | {"axis": -2 if w.causal else -1}),
        "attention_scores": ((query, key), {}),
        "average": ((scores, value), masked),
        "scaled_dot_product_attention": ((query, key, far_value), crossed),
        "blockwise_attention": ((query, by_head(w.length), value), masked | {"block": w.others}),
        "dense_scores": ((x, *maps(max_len)), {"columns": w.length}),
        "dense_synthesizer": ((x, value, *maps(max_len)), masked),
        "factorized_dense_scores": ((x, *two_maps), {"columns": w.length}),
        "factorized_dense_synthesizer": ((x, value, *two_maps), masked),
        "random_scores": ((R,), {"length": w.length}),
        "random_synthesizer": ((value, R), masked),
        "factorized_random_scores": ((R1, R2), {"length": w.length}),
        "factorized_random_synthesizer": ((value, R1, R2), masked),
        "mixture_scores": ((draw(2), scores, draw(w.n_heads, w.length, w.length)), {}),
        "fourier_mixing": ((x,), {}),
        "hartley_mixing": ((x,), {}),
        "linear_mixing": ((x, draw(max_len, max_len), draw(w.d_model, w.d_model)), {}),
        "dropout": ((x,), {"rate": 0.4, "generator": np.random.default_rng(w.seed)}),
        "embedding": ((draw(w.others, w.d_model),), {"ids": np.maximum(labels, 0)}),
        "mean_pooling": ((x,), {"mask": mask}),
        "softmax_cross_entropy": (
            (draw(w.batch, w.length, w.others),),
            {"labels": labels, "label_smoothing": 0.1},
        ),
        "binary_cross_entropy_with_logits": ((draw(w.batch, w.others),), {"targets": targets}),
        "mean_squared_error": ((draw(w.batch, w.others),), {"target": targets}),
    }


NAMES = sorted(name.removesuffix("_backward") for name in F.__all__ if name.endswith("_backward"))


def call(name: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
    if name == "embedding":
        return F.embedding(options["ids"], *inputs)
    return getattr(F, name)(*inputs, **options)


def pull(name: str, dy: np.ndarray, cache: Any) -> tuple[np.ndarray, ...]:
    gradients = getattr(F, f"{name}_backward")(dy, cache)
    return gradients if isinstance(gradients, tuple) else (gradients,)


def upstream(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


def test_every_pair_is_searched():
    world = World(1, 1, 1, 1, 1, 1, "ordinary", False, False, 0)
    assert sorted(pairs(world, "float32")) == NAMES


@pytest.mark.parametrize("name", NAMES)
@searched(20)
@given(world=WORLDS)
def test_a_pair_is_finite_and_its_gradients_have_the_shapes_of_its_inputs(name, world):
    inputs, options = pairs(world, "float32")[name]
    y, cache = call(name, inputs, options)
    dy = upstream(y.shape, world.seed).astype("float32")
    gradients = pull(name, dy, cache)
    assert_finite(y, *gradients)
    assert [g.shape for g in gradients] == [x.shape for x in inputs]
    assert {a.dtype.name for a in (y, *gradients)} == {"float32"}
    for once, twice in zip(gradients, pull(name, dy, cache), strict=True):
        np.testing.assert_array_equal(once, twice)


@pytest.mark.parametrize("name", NAMES)
@searched(20)
@given(world=WORLDS.filter(lambda world: world.comparable))
def test_a_pair_in_float32_is_the_pair_in_float64(name, world):
    found = {}
    for dtype in ("float32", "float64"):
        inputs, options = pairs(world, dtype)[name]
        y, cache = call(name, inputs, options)
        dy = upstream(y.shape, world.seed).astype("float32").astype(dtype)
        found[dtype] = y, pull(name, dy, cache)
    assert_alike((found["float32"][0],), (found["float64"][0],))
    assert_alike(found["float32"][1], found["float64"][1])


# Softmax and layer norm: what they are for --------------------------------------------------------


@searched(60)
@given(world=WORLDS)
def test_softmax_gives_weights_and_masked_rows_none(world):
    mask = None if world.mask is None else world.mask[:, None, :]
    scores = world.artist("float32")(world.batch, world.keys, world.length)
    weights, _ = F.softmax(scores, mask=mask)
    assert (weights >= 0.0).all()
    kept = np.ones((world.batch, 1), bool) if mask is None else mask.any(axis=-1)
    np.testing.assert_allclose(weights.sum(axis=-1), kept * np.ones(world.keys), atol=1e-5)
    if mask is not None:
        assert not weights[np.broadcast_to(~mask, weights.shape)].any()


@searched(60)
@given(world=WORLDS)
def test_layer_norm_gives_mean_0_and_no_more_than_variance_1(world):
    x = world.artist("float32")(world.batch, world.length, world.d_model)
    one, zero = np.ones(world.d_model, "float32"), np.zeros(world.d_model, "float32")
    y, _ = F.layer_norm(x, one, zero)
    assert np.abs(y.mean(axis=-1)).max() < 1e-3
    assert y.var(axis=-1).max() < 1.001


# Layers, mixers, encoders -------------------------------------------------------------------------


def check_layer(
    make: Any, x32: np.ndarray, mask: np.ndarray | None, seed: int, *, comparable: bool
) -> None:
    """Hold a layer to everything above, in training mode."""
    found = {}
    for dtype in ("float32", "float64"):
        layer, x = make(dtype), x32.astype(dtype) if x32.dtype.kind == "f" else x32

        def run(layer=layer, x=x):
            generator = np.random.default_rng(seed)
            return layer.forward(x, nf.Context(training=True, generator=generator, mask=mask))

        y, cache = run()
        dy = upstream(y.shape, seed).astype("float32").astype(dtype)
        gradients, again = nf.Gradients(layer), nf.Gradients(layer)
        dx = layer.backward(dy, cache, gradients)
        dx_again = layer.backward(dy, cache, again)
        assert_finite(y, gradients.flat)
        assert y.dtype == dtype
        assert {n: g.shape for n, g in gradients.items()} == {
            n: p.shape for n, p in layer.parameters().items()
        }
        np.testing.assert_array_equal(gradients.flat, again.flat)
        np.testing.assert_array_equal(run()[0], y)
        if x.dtype.kind == "f":
            assert dx.shape == x.shape
            assert_finite(dx)
            np.testing.assert_array_equal(dx, dx_again)
        else:
            assert dx is None
            dx = np.zeros(1)
        found[dtype] = y, (dx, gradients.flat)
    if comparable:
        assert_alike((found["float32"][0],), (found["float64"][0],))
        assert_alike(found["float32"][1], found["float64"][1])


LAYERS: dict[str, Any] = {
    "Linear": lambda w, made: L.Linear(w.d_model, w.others, **made),
    "Conv1d": lambda w, made: L.Conv1d(w.d_model, w.others, w.keys, **made),
    "LayerNorm": lambda w, made: L.LayerNorm(w.d_model, dtype=made["dtype"]),
    "Positions": lambda w, made: L.Positions(w.length, w.d_model, "learned", **made),
    "PositionwiseFeedForward": lambda w, made: L.PositionwiseFeedForward(
        w.d_model, w.others, "gelu", ffn="conv1d" if w.causal else "linear", **made
    ),
    "TimeDistributed": lambda w, made: L.TimeDistributed(L.Linear(w.d_model, w.others, **made)),
    "Sequential": lambda w, made: L.Sequential(
        L.Linear(w.d_model, w.others, **made), L.Tanh(), L.Dropout(0.3)
    ),
    "MeanPooling": lambda w, made: L.MeanPooling(),
    "FirstToken": lambda w, made: L.FirstToken(),
    "Flatten": lambda w, made: L.Flatten(),
    "EveryToken": lambda w, made: L.EveryToken(),
    "Dropout": lambda w, made: L.Dropout(0.5),
    "ReLU": lambda w, made: L.ReLU(),
    "GELU": lambda w, made: L.GELU("tanh" if w.causal else "none"),
    "Tanh": lambda w, made: L.Tanh(),
}


@pytest.mark.parametrize("name", LAYERS)
@searched(12)
@given(world=WORLDS)
def test_a_layer_holds(name, world):
    x = world.artist("float32")(world.batch, world.length, world.d_model)

    def make(dtype: str) -> nf.Layer:
        return LAYERS[name](world, {"seed": world.seed, "dtype": dtype})

    check_layer(make, x, world.mask, world.seed, comparable=world.comparable)


@searched(25)
@given(world=WORLDS)
def test_an_embedding_holds(world):
    ids = np.random.default_rng(world.seed).integers(0, world.others, (world.batch, world.length))

    def make(dtype: str) -> nf.Layer:
        return L.Embedding(world.others, world.d_model, scale=True, seed=0, dtype=dtype)

    check_layer(make, ids, world.mask, world.seed, comparable=True)


@pytest.mark.parametrize("name", MIXERS)
@searched(25)
@given(world=WORLDS, memory=st.sampled_from(["stored", "blocks"]), zero=st.booleans())
def test_a_mixer_holds(name, world, memory, zero):
    x = world.artist("float32")(world.batch, world.length, world.d_model)
    chosen = MixerSettings(
        world.d_model,
        n_heads=world.n_heads,
        max_len=world.length,
        causal=world.causal and issubclass(MIXERS[name], AveragingMixer),
        padding="zero" if zero else "per_length",
        memory=memory,
        rank=world.others,
    )

    def make(dtype: str) -> nf.Layer:
        return MIXERS[name].build(chosen, seed=world.seed, dtype=dtype)

    check_layer(make, x, world.mask, world.seed, comparable=world.comparable)


CONFIGS = st.fixed_dictionaries(
    {
        "n_layers": st.integers(1, 2),
        "mixer": st.sampled_from(sorted(MIXERS)),
        "norm": st.sampled_from(["post", "pre"]),
        "ffn": st.sampled_from(["linear", "conv1d"]),
        "activation": st.sampled_from(["relu", "gelu", "gelu_tanh", "tanh"]),
        "dropout": st.sampled_from([0.0, 0.3]),
        "share_layers": st.booleans(),
        "positions": st.sampled_from(["sinusoidal", "learned", "none"]),
    }
)


def config_of(world: World, chosen: dict[str, Any]) -> nf.EncoderConfig:
    return nf.EncoderConfig(
        d_model=world.d_model,
        n_heads=world.n_heads,
        d_ff=world.others,
        max_len=world.length,
        causal=world.causal and issubclass(MIXERS[chosen["mixer"]], AveragingMixer),
        padding="per_length",
        **chosen,
    )


@searched(150)
@given(world=WORLDS, chosen=CONFIGS)
def test_an_encoder_holds(world, chosen):
    x = world.artist("float32")(world.batch, world.length, world.d_model)
    config = config_of(world, chosen)
    # A corner of relu may lie between the two roundings of a number.
    comparable = world.numbers == "ordinary" and chosen["activation"] != "relu"

    def make(dtype: str) -> nf.Layer:
        return nf.Encoder(config, seed=world.seed, dtype=dtype)

    check_layer(make, x, world.mask, world.seed, comparable=comparable)


@searched(150)
@given(
    world=WORLDS,
    chosen=CONFIGS,
    pooling=st.sampled_from(sorted(L.POOLINGS)),
    tokens=st.booleans(),
    n_classes=st.integers(2, 3),
)
def test_a_classifier_learns_from_finite_numbers(world, chosen, pooling, tokens, n_classes):
    rng = np.random.default_rng(world.seed)
    kind = {"vocab_size": world.others} if tokens else {"n_features": world.others}
    model = nf.SequenceClassifier(
        config_of(world, chosen), n_classes, pooling=pooling, seed=world.seed, **kind
    )
    x = (
        rng.integers(0, world.others, (world.batch, world.length))
        if tokens
        else world.artist("float32")(world.batch, world.length, world.others)
    )
    shape = (world.batch, world.length) if pooling == "none" else (world.batch,)
    labels = rng.integers(-1 if pooling == "none" else 0, n_classes, shape)
    loss, gradients = model.loss_and_gradients(x, labels, world.mask, seed=world.seed)
    assert_finite(np.array(loss), gradients.flat)
    again, gradients_again = model.loss_and_gradients(x, labels, world.mask, seed=world.seed)
    assert again == loss
    np.testing.assert_array_equal(gradients_again.flat, gradients.flat)
    assert {n: g.shape for n, g in gradients.items()} == {
        n: p.shape for n, p in model.parameters().items()
    }
    nf.Adam(model.parameters()).step(gradients)
    probabilities = model.predict_probabilities(x, world.mask)
    assert probabilities.shape == (*shape, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-5)


@searched(60)
@given(world=WORLDS.filter(lambda world: world.padded), chosen=CONFIGS)
def test_what_padding_holds_changes_no_prediction(world, chosen):
    model = nf.SequenceClassifier(config_of(world, chosen), 3, n_features=world.others)
    x = world.artist("float32")(world.batch, world.length, world.others)
    other = np.where(world.mask[..., None], x, np.float32(np.nan))
    np.testing.assert_array_equal(
        model.predict_probabilities(x, world.mask), model.predict_probabilities(other, world.mask)
    )
