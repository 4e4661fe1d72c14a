"""What must hold for any shape and any numbers: found by searching, not by choosing.

An example has small sizes (a length, a batch, a head of 1; primes; more keys than queries), numbers
(ordinary, 1e4, 1e-30; all 0, all alike, a single spike) and padding, whole sequences of it
included. Every run looks at the same examples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer.mixers import MIXERS, Attention, AveragingMixer
from tests.needs import NEEDS
from tests.pairs import NAMES, Example, differentiable, gradients_of, pairs, run

pytest.importorskip("hypothesis", reason=NEEDS["hypothesis"])
from hypothesis import given, settings
from hypothesis import strategies as st

ALIKE = 1e-3
"""float32 and float64 agree to this, relative to the largest entry, on numbers of usual size."""

SIZES = st.sampled_from([1, 2, 3, 5, 7])
NUMBERS = ["ordinary", "huge", "tiny", "zeros", "constant", "spike"]
EXAMPLES = st.builds(
    Example,
    length=SIZES,
    keys=SIZES,
    others=SIZES,
    numbers=st.sampled_from(NUMBERS),
    batch=st.integers(1, 3),
    n_heads=st.integers(1, 3),
    d_head=st.integers(1, 3),
    causal=st.booleans(),
    padded=st.booleans(),
    seed=st.integers(0, 99),
)


def searched(max_examples: int) -> settings:
    """Return settings under which every run looks at the same examples."""
    return settings(derandomize=True, deadline=None, database=None, max_examples=max_examples)


def assert_finite(*arrays: np.ndarray) -> None:
    for array in arrays:
        assert np.isfinite(array).all()


def assert_alike(single: tuple[np.ndarray, ...], double: tuple[np.ndarray, ...]) -> None:
    """float32 is float64 up to rounding; a gradient that is 0 by nature is small beside others."""
    largest = max(1e-3, *(float(np.abs(array).max(initial=0.0)) for array in double))
    for a, b in zip(single, double, strict=True):
        np.testing.assert_allclose(a / largest, b / largest, rtol=0, atol=ALIKE)


def upstream(shape: tuple[int, ...], seed: int, dtype: str) -> np.ndarray:
    """Return a gradient of y, with the same numbers in float32 and in float64."""
    drawn = np.asarray(np.random.default_rng(seed).normal(size=shape))
    return drawn.astype("float32").astype(dtype)


def vectors(example: Example, n_features: int) -> np.ndarray:
    return np.asarray(example.make_draw("float32")(example.batch, example.length, n_features))


def gradients_in_float32(name, example):
    """Return output, upstream gradient, cache and gradients of a pair."""
    y, cache = run(name, example, "float32")
    dy = upstream(y.shape, example.seed, "float32")
    return y, dy, cache, gradients_of(name, dy, cache)


@pytest.mark.parametrize("name", NAMES)
@searched(12)
@given(example=EXAMPLES)
def test_a_pair_is_finite(name, example):
    y, _, _, gradients = gradients_in_float32(name, example)
    assert_finite(y, *gradients)
    assert {a.dtype.name for a in (y, *gradients)} == {"float32"}


@pytest.mark.parametrize("name", NAMES)
@searched(12)
@given(example=EXAMPLES)
def test_gradients_have_the_shapes_of_their_inputs(name, example):
    inputs, _ = pairs(example, "float32")[name]
    *_, gradients = gradients_in_float32(name, example)
    assert [g.shape for g in gradients] == [x.shape for x in differentiable(inputs)]


@pytest.mark.parametrize("name", NAMES)
@searched(12)
@given(example=EXAMPLES)
def test_a_second_backward_pass_gives_the_same_gradients(name, example):
    _, dy, cache, gradients = gradients_in_float32(name, example)
    for once, twice in zip(gradients, gradients_of(name, dy, cache), strict=True):
        np.testing.assert_array_equal(once, twice)


@pytest.mark.parametrize("name", NAMES)
@searched(12)
@given(example=EXAMPLES.filter(lambda example: example.comparable))
def test_a_pair_in_float32_is_the_pair_in_float64(name, example):
    by_dtype = {}
    for dtype in ("float32", "float64"):
        y, cache = run(name, example, dtype)
        by_dtype[dtype] = y, gradients_of(name, upstream(y.shape, example.seed, dtype), cache)
    assert_alike((by_dtype["float32"][0],), (by_dtype["float64"][0],))
    assert_alike(by_dtype["float32"][1], by_dtype["float64"][1])


def softmax_of(example):
    """Return the softmax of random scores, and its mask."""
    mask = None if example.mask is None else example.mask[:, None, :]
    scores = example.make_draw("float32")(example.batch, example.keys, example.length)
    weights, _ = F.softmax(scores, mask=mask)
    return weights, mask


@searched(60)
@given(example=EXAMPLES)
def test_softmax_gives_weights_that_sum_to_1(example):
    """But for rows that are masked as a whole."""
    weights, mask = softmax_of(example)
    assert (weights >= 0.0).all()
    rows = np.ones((example.batch, 1), bool) if mask is None else mask.any(axis=-1)
    np.testing.assert_allclose(weights.sum(axis=-1), rows * np.ones(example.keys), atol=1e-5)


@searched(60)
@given(example=EXAMPLES)
def test_softmax_gives_no_weight_to_what_is_masked(example):
    weights, mask = softmax_of(example)
    if mask is not None:
        assert not weights[np.broadcast_to(~mask, weights.shape)].any()


def normalize(example):
    """Return random vectors behind a layer norm of gamma 1 and beta 0."""
    x = vectors(example, example.d_model)
    one = np.ones(example.d_model, "float32")
    zero = np.zeros(example.d_model, "float32")
    return F.layer_norm(x, one, zero)[0]


@searched(60)
@given(example=EXAMPLES)
def test_layer_norm_gives_mean_0(example):
    assert np.abs(normalize(example).mean(axis=-1)).max() < 1e-3


@searched(60)
@given(example=EXAMPLES)
def test_layer_norm_gives_at_most_variance_1(example):
    assert normalize(example).var(axis=-1).max() < 1.001


def check_layer(make: Any, x32: np.ndarray, example: Example, comparable: Any = None) -> None:
    """Check of a layer in training mode what is checked of a pair above."""
    by_dtype = {}
    for dtype in ("float32", "float64"):
        layer = make({"seed": example.seed, "dtype": dtype})
        x = x32.astype(dtype) if x32.dtype.kind == "f" else x32

        def forward(layer=layer, x=x):
            generator = np.random.default_rng(example.seed)
            context = nf.Context(training=True, generator=generator, mask=example.mask)
            return layer.forward(x, context)

        y, cache = forward()
        dy = upstream(y.shape, example.seed, dtype)
        gradients, again = nf.Gradients(layer), nf.Gradients(layer)
        dx = layer.backward(dy, cache, gradients)
        dx_again = layer.backward(dy, cache, again)
        assert_finite(y, gradients.flat)
        assert y.dtype == dtype
        assert {n: g.shape for n, g in gradients.items()} == {
            n: p.shape for n, p in layer.parameters().items()
        }
        np.testing.assert_array_equal(gradients.flat, again.flat)
        np.testing.assert_array_equal(forward()[0], y)
        if x.dtype.kind == "f":
            assert dx.shape == x.shape
            assert_finite(dx)
            np.testing.assert_array_equal(dx, dx_again)
        else:
            assert dx is None
            dx = np.zeros(1)
        by_dtype[dtype] = y, (dx, gradients.flat)
    if example.comparable if comparable is None else comparable:
        assert_alike((by_dtype["float32"][0],), (by_dtype["float64"][0],))
        assert_alike(by_dtype["float32"][1], by_dtype["float64"][1])


CONFIGS = st.fixed_dictionaries(
    {
        "n_layers": st.integers(1, 2),
        "mixer": st.sampled_from(sorted(MIXERS)),
        "norm": st.sampled_from(["post", "pre"]),
        "ffn": st.sampled_from(["linear", "conv1d"]),
        "activation": st.sampled_from(["relu", "gelu", "gelu_tanh", "tanh"]),
        "dropout": st.sampled_from([0.0, 0.3]),
        "share_layers": st.booleans(),
        "positions": st.sampled_from(["sinusoidal", "sinusoidal_halves", "learned", "none"]),
    }
)


def config_of(example: Example, chosen: dict[str, Any]) -> nf.EncoderConfig:
    causal = example.causal and issubclass(MIXERS[chosen["mixer"]], Attention | AveragingMixer)
    return nf.EncoderConfig(
        d_model=example.d_model,
        n_heads=example.n_heads,
        d_ff=example.others,
        max_len=example.length,
        causal=causal,
        padding="per_length",
        **chosen,
    )


@searched(80)
@given(example=EXAMPLES, chosen=CONFIGS)
def test_an_encoder_holds(example, chosen):
    x = vectors(example, example.d_model)
    config = config_of(example, chosen)
    # A corner of relu may lie between the two roundings of a number.
    comparable = example.numbers == "ordinary" and chosen["activation"] != "relu"
    check_layer(lambda made: nf.Encoder(config, **made), x, example, comparable=comparable)


@searched(80)
@given(
    example=EXAMPLES,
    chosen=CONFIGS,
    pooling=st.sampled_from(sorted(L.POOLINGS)),
    tokens=st.booleans(),
    n_classes=st.integers(2, 3),
)
def test_a_classifier_learns_from_finite_numbers(example, chosen, pooling, tokens, n_classes):
    rng = np.random.default_rng(example.seed)
    model = nf.SequenceClassifier(
        config_of(example, chosen),
        n_classes,
        vocab_size=example.others if tokens else None,
        n_features=None if tokens else example.others,
        pooling=pooling,
        seed=example.seed,
    )
    ids = rng.integers(0, example.others, (example.batch, example.length))
    x = ids if tokens else vectors(example, example.others)
    shape = (example.batch, example.length) if pooling == "none" else (example.batch,)
    labels = rng.integers(-1 if pooling == "none" else 0, n_classes, shape)
    loss, gradients = model.loss_and_gradients(x, labels, example.mask, seed=example.seed)
    assert_finite(np.array(loss), gradients.flat)
    again, gradients_again = model.loss_and_gradients(x, labels, example.mask, seed=example.seed)
    assert again == loss
    np.testing.assert_array_equal(gradients_again.flat, gradients.flat)
    assert {n: g.shape for n, g in gradients.items()} == {
        n: p.shape for n, p in model.parameters().items()
    }
    nf.Adam(model.parameters()).step(gradients)
    probabilities = model.predict_probabilities(x, example.mask)
    assert probabilities.shape == (*shape, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-5)


@searched(60)
@given(example=EXAMPLES.filter(lambda example: example.padded), chosen=CONFIGS)
def test_what_padding_holds_changes_no_prediction(example, chosen):
    model = nf.SequenceClassifier(config_of(example, chosen), 3, n_features=example.others)
    x = vectors(example, example.others)
    other = np.where(example.mask[..., None], x, np.float32(np.nan))
    probabilities, expected = (model.predict_probabilities(a, example.mask) for a in (other, x))
    np.testing.assert_array_equal(probabilities, expected)
