"""NaN and infinity at padding reach neither results nor gradients."""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import Context
from npformer.mixers import MixerSettings, WholeSequenceMixer

MASK = np.array([[True] * 5, [True, True, False, False, False], [False] * 5])

WHOLE = [name for name, kind in nf.MIXERS.items() if issubclass(kind, WholeSequenceMixer)]
STRATEGIES = [(name, "refuse") for name in nf.MIXERS if name not in WHOLE]
STRATEGIES += [(name, strategy) for name in WHOLE for strategy in ("per_length", "zero")]


AVERAGING = nf.mixers.Attention | nf.mixers.AveragingMixer
BACK = [one for one in STRATEGIES if issubclass(nf.MIXERS[one[0]], AVERAGING)]
CAUSAL = [*((*one, False) for one in STRATEGIES), *((*one, True) for one in BACK)]
"""Those that can look back only, in both ways."""


def spoil(*arrays, where=~MASK):
    """Write NaN and both infinities into arrays, in turn."""
    for array in arrays:
        array[where] = np.resize([np.nan, np.inf, -np.inf], array[where].shape)


def both_passes(layer, x, dy, fast):
    """Return y, dx and the gradients of the parameters."""
    gradients = nf.Gradients(layer)
    runs = nf.fast(layer) if fast else layer
    y, cache = runs.forward(x.copy(), Context(mask=MASK))
    y = y.copy()
    dx = runs.backward(dy.copy(), cache, gradients)
    return y, dx, gradients.flat


def assert_padding_is_hidden(layer, width, fast):
    x, dy = np.random.default_rng(0).normal(size=(2, 3, 5, width))
    x[~MASK], dy[~MASK] = 0.0, 0.0
    with np.errstate(all="raise"):
        y, dx, flat = both_passes(layer, x, dy, fast)
        spoil(x, dy)
        with_bad = both_passes(layer, x, dy, fast)
    np.testing.assert_array_equal(with_bad[0][MASK], y[MASK])
    assert np.isfinite(with_bad[0]).all()
    np.testing.assert_allclose(with_bad[1], dx, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(with_bad[1][~MASK], 0.0)
    np.testing.assert_allclose(with_bad[2], flat, rtol=0, atol=1e-13)
    assert np.isfinite(with_bad[2]).all()


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("name", "padding", "causal"), CAUSAL)
def test_of_a_mixer(name, padding, causal, fast):
    settings = MixerSettings(8, 2, 5, causal=causal, padding=padding)
    assert_padding_is_hidden(nf.MIXERS[name].build(settings, seed=0, dtype="float64"), 8, fast)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("changes", [{}, {"norm": "pre", "memory": "blocks", "ffn": "conv1d"}])
@pytest.mark.parametrize(("name", "padding"), STRATEGIES)
def test_of_an_encoder(name, padding, changes, fast):
    config = nf.EncoderConfig(
        d_model=8,
        n_layers=2,
        n_heads=2,
        d_ff=16,
        max_len=5,
        mixer=name,
        padding=padding,
        **changes,
    )
    encoder = nf.Encoder(config, dtype="float64")
    assert_padding_is_hidden(encoder, 8, fast)
    x = np.random.default_rng(1).normal(size=(3, 5, 8))
    y = encoder(x, MASK)
    spoil(x)
    np.testing.assert_array_equal(encoder(x, MASK), y)
    np.testing.assert_array_equal(y[~MASK], 0.0)
    np.testing.assert_allclose(nf.fast(encoder)(x, MASK), y, atol=1e-12)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("junk", [None, 1e300])
def test_of_a_whole_model_below_its_checks(fast, junk):
    config = nf.EncoderConfig(
        d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=5, embedding_norm=True
    )
    model = nf.SequenceClassifier(config, 3, n_features=2, dtype="float64")
    x = np.random.default_rng(0).normal(size=(3, 5, 2))
    dy = np.ones((3, 3))
    x[~MASK] = 0.0
    y, dx, flat = both_passes(model, x, dy, fast)
    spoil(x)
    if junk is not None:
        x[~MASK] = junk
    with_bad = both_passes(model, x, dy, fast)
    np.testing.assert_array_equal(with_bad[0], y)
    np.testing.assert_allclose(with_bad[2], flat, rtol=0, atol=1e-13)
    if dx is not None:  # in the engine the first layer has none
        np.testing.assert_array_equal(with_bad[1], dx)


# Functions ----------------------------------------------------------------------------------------
def test_of_softmax_in_both_passes():
    x, dy = np.random.default_rng(0).normal(size=(2, 3, 5))
    y, cache = F.softmax(x, mask=MASK)
    dx = F.softmax_backward(dy, cache)
    spoil(x, dy)
    again, cache = F.softmax(x, mask=MASK)
    np.testing.assert_array_equal(again, y)
    np.testing.assert_array_equal(F.softmax_backward(dy, cache), dx)
    np.testing.assert_array_equal(dx[~MASK], 0.0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "attend",
    [
        F.scaled_dot_product_attention,
        F.blockwise_attention,
    ],
    ids=["whole", "in blocks"],
)
@pytest.mark.parametrize("shape", ["keys", "queries and keys", "of one sequence"])
def test_of_attention(causal, shape, attend):
    """Rows of keys and values that no query sees, and rows of queries that see nothing."""
    query, key, value, dy = np.random.default_rng(0).normal(size=(4, 3, 2, 5, 4))
    is_key_visible = (
        MASK[1] if shape == "of one sequence" else np.broadcast_to(MASK[:, None], (3, 2, 5))
    )
    is_key_visible = np.broadcast_to(is_key_visible, (3, 2, 5))
    mask = MASK[1] if shape == "of one sequence" else MASK[:, None, None, :]
    sees_any_key = np.broadcast_to(is_key_visible.any(-1)[..., None], is_key_visible.shape)
    if shape == "queries and keys":
        mask = mask & MASK[:, None, :, None]
        sees_any_key = is_key_visible
    backward = getattr(F, f"{attend.__name__}_backward")

    def run():
        if attend is F.blockwise_attention:
            y, cache = attend(query, key, value, mask, causal, block=2)
        else:
            y, cache = attend(query, key, value, mask, causal)
        return y, *backward(dy, cache)

    expected = run()
    spoil(key, value, where=~is_key_visible)
    spoil(query, dy, where=~sees_any_key)
    with np.errstate(invalid="ignore"):  # in scores that are hidden
        results = run()
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(results[0][~sees_any_key], 0.0)
    for gradient, rows in zip(
        results[1:], (sees_any_key, is_key_visible, is_key_visible), strict=True
    ):
        np.testing.assert_array_equal(gradient[~rows], 0.0)


def test_of_an_average_of_values_that_the_batch_shares():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 5, 5))
    value = rng.normal(size=(5, 4))
    dy = np.ones((3, 5, 4))
    mask = np.array([True, True, True, False, False])
    y, cache = F.average(scores, value, mask)
    dscores, dvalue = F.average_backward(dy, cache)
    spoil(value, where=~mask)
    spoil(scores, where=(..., ~mask))
    again, cache = F.average(scores, value, mask)
    np.testing.assert_array_equal(again, y)
    for one, other in zip(F.average_backward(dy, cache), (dscores, dvalue), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.shape == other.shape


# Rows without anything ----------------------------------------------------------------------------
ROWS = np.array([[-np.inf] * 3, [-np.inf, 1.0, 2.0]])
"""A row of padding alone, and one with some padding."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_of_minus_infinity_is_0(dtype):
    x = ROWS.astype(dtype)
    y, _ = F.softmax(x)
    np.testing.assert_array_equal(y[0], 0.0)
    np.testing.assert_allclose(y[1], [0.0, 1 / (1 + np.e), np.e / (1 + np.e)], rtol=1e-6)
    masked, _ = F.softmax(np.zeros_like(x), mask=np.isfinite(x))
    np.testing.assert_array_equal(y[0], masked[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_of_minus_infinity_has_no_gradient(dtype):
    x = ROWS.astype(dtype)
    _, cache = F.softmax(x)
    np.testing.assert_array_equal(F.softmax_backward(np.ones_like(x), cache)[0], 0.0)


def test_queries_whose_scores_are_minus_infinity_attend_to_nothing():
    rng = np.random.default_rng(0)
    scores = np.full((2, 4), -np.inf)
    value = rng.normal(size=(4, 3))
    dy = np.ones((2, 3))
    y, cache = F.average(scores, value)
    np.testing.assert_array_equal(y, 0.0)
    for gradient in F.average_backward(dy, cache):
        np.testing.assert_array_equal(gradient, 0.0)


# What sends gradients into padding ----------------------------------------------------------------
def test_features_at_padding_have_no_gradient():
    config = nf.EncoderConfig(d_model=8, n_heads=2, max_len=5)
    embed = nf.models.InputEmbedding(config, vocab_size=None, n_features=2, seed=0, dtype="float64")
    x = np.random.default_rng(0).normal(size=(3, 5, 2))
    _, dx, _ = both_passes(embed, x, np.ones((3, 5, 8)), fast=False)
    np.testing.assert_array_equal(dx[~MASK], 0.0)
    assert (dx[MASK] != 0.0).all()


def test_what_an_encoder_hides_has_no_gradient_whatever_its_layers_do():
    class Roll(nf.Layer):
        """Each token is replaced by its neighbour, padding or not."""

        def forward(self, x, context):
            return np.roll(x, 1, axis=1), None

        def backward(self, dy, cache, gradients):
            return np.roll(dy, -1, axis=1)

    encoder = nf.Encoder(nf.EncoderConfig(d_model=8, n_heads=2, max_len=5), dtype="float64")
    encoder.blocks = [Roll()]
    x = np.random.default_rng(0).normal(size=(3, 5, 8))
    y, dx, _ = both_passes(encoder, x, np.ones_like(x), fast=False)
    np.testing.assert_array_equal(y[1, 0], 0.0)  # its neighbour was the last token, padding
    np.testing.assert_array_equal(y[~MASK], 0.0)
    np.testing.assert_array_equal(dx[~MASK], 0.0)
    np.testing.assert_array_equal(dx[0], 1.0)
    np.testing.assert_array_equal(dx[1, :2], [[1.0] * 8, [0.0] * 8])


def test_a_classifier_hides_padding_once():
    config = nf.EncoderConfig(d_model=8, n_heads=2, max_len=5)
    model = nf.SequenceClassifier(config, 3, n_features=2)
    x = np.ones((3, 5, 2), "float32")
    batch = model.upload(model.check(x, mask=MASK))
    (inputs,) = batch.inputs
    assert inputs.padding.hidden
    assert batch.select(slice(1, 2)).inputs[0].padding.hidden
    np.testing.assert_array_equal(inputs.x[~MASK], 0.0)
    assert not model.check(x, mask=MASK).inputs[0].padding.hidden
    y = inputs.x
    for layer in (model.embed, model.encoder):  # as if it had not been hidden before
        y, _ = layer.forward(y, batch.within(nf.Context()))
        np.testing.assert_array_equal(y[~MASK], 0.0)
