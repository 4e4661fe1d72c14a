"""step_memory: the memory of a step that is not computed is that of one that is."""

import gc
import tracemalloc

import numpy as np
import pytest

import npformer as nf
from npformer.engine.team import Team
from npformer.engine.unfilled.steps import scratch_of_thread
from npformer.models.step import PlainStep

LENGTH, SAMPLES, VOCABULARY = 256, 16, 1000
NEAR = 0.1
"""How much less or more the estimate may be: what is promised where a step takes 50 MB."""

SCRATCH = scratch_of_thread("float32")
"""Bytes in the estimate that were there before the steps that are measured here."""


def classifier(mixer="attention", dtype="float32", pooling="mean", **settings):
    config = nf.EncoderConfig(
        **{
            "d_model": 128,
            "n_layers": 2,
            "n_heads": 4,
            "d_ff": 512,
            "max_len": LENGTH,
            "mixer": mixer,
            "dropout": 0.1,
            **settings,
        }
    )
    return nf.SequenceClassifier(
        config, 10, vocab_size=VOCABULARY, pooling=pooling, seed=0, dtype=dtype
    )


def ids(samples=SAMPLES, length=LENGTH):
    return np.random.default_rng(0).integers(4, VOCABULARY, size=(samples, length))


def traced_peak(model, x, y, workers=1, micro_batch=None):
    """Return the most that NumPy and Python take in two steps, above what was there before."""
    batch = model.batch(x, y)
    generator = np.random.default_rng(0)
    adam = nf.Adam(model.parameters())
    if nf.engine.enabled():
        step = Team(model, workers, micro_batch).step
    else:
        step = PlainStep(model, model.loss, generator)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2):
            _, gradients = step(batch, generator) if nf.engine.enabled() else step(batch)
            adam.step(gradients)
            del gradients
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module", autouse=True)
def with_what_is_loaded_once():
    """Import and allocate what stays: SciPy, and scratch memory."""
    for dtype in ("float32", "float64"):
        traced_peak(classifier(dtype=dtype, n_layers=1), ids(2), np.zeros(2, int))


MIXERS = ["attention", "dense_synthesizer", "fourier", "linear", "gated_convolution", "mixture"]


@pytest.mark.slow
@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("kernels", [True, False], ids=["fast", "plain"])
def test_a_step_takes_what_was_estimated(mixer, kernels):
    assert_followed(classifier(mixer), kernels)


SETTINGS = {
    "no dropout": {"dropout": 0.0},
    "float64": {"dtype": "float64"},
    "norms before": {"norm": "pre"},
    "causal": {"causal": True},
    "dropout of weights": {"attention_dropout": 0.1},
    "few heads of keys": {"n_kv_heads": 2, "rope_theta": 1e4},
    "gated": {"ffn": "gated"},
    "a window": {"window": 32},
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("kernels", [True, False], ids=["fast", "plain"])
def test_settings_of_attention_are_followed(settings, kernels):
    assert_followed(classifier(**settings), kernels)


@pytest.mark.slow
@pytest.mark.parametrize("length", [64, 1024])
def test_short_or_long_sequences_are_followed(length):
    assert_followed(classifier(max_len=length), kernels=True, x=ids(4096 // length, length))


@pytest.mark.slow
@pytest.mark.parametrize("kernels", [True, False], ids=["fast", "plain"])
def test_a_language_model_is_followed(kernels):
    config = nf.EncoderConfig(128, 2, 4, 512, max_len=128, causal=True)
    model = nf.LanguageModel(config, vocab_size=20_000, seed=0)
    x = ids(length=128)
    assert_followed(model, kernels, x, y=x)


@pytest.mark.slow
def test_micro_batches_are_followed():
    x, y = ids(), np.zeros(SAMPLES, int)
    model = classifier()
    report = nf.step_memory(model, x, y, workers=1)
    expected = {n: traced_peak(model, x, y, micro_batch=SAMPLES // n) for n in (1, 2, 4, 8)}
    estimated = {n: peak - SCRATCH for n, peak in report.micro_batches.items()}
    assert estimated == pytest.approx(expected, rel=NEAR)


def assert_followed(model, kernels, x=None, y=None):
    x = ids() if x is None else x
    y = np.zeros(len(x), int) if y is None else y
    with nf.use_kernels(kernels):
        estimate = nf.step_memory(model, x, y, workers=1, micro_batches=()).peak
        measured = traced_peak(model, x, y)
    assert measured > 10 * 2**20
    scratch = scratch_of_thread(model.dtype) if kernels else 0
    assert estimate - scratch == pytest.approx(measured, rel=NEAR)


class Scaled(nf.layers.Linear):
    """A layer of a user's own: its cache has a name in its code."""

    def forward(self, x, context):
        hidden = np.tanh(x @ self.weight.value)
        return hidden + x, (x, hidden)

    def backward(self, dy, cache, gradients):
        x, hidden = cache
        dz = dy * (1.0 - hidden**2)
        gradients.add(self.weight, np.einsum("bli,blj->ij", x, dz))
        return dz @ self.weight.value.T + dy


def test_a_layer_of_ones_own_is_followed_with_its_names():
    model = classifier()
    model.encoder.blocks[0].feed_forward = Scaled(128, 128, bias=False, seed=0)
    model.flatten()
    report = nf.step_memory(model, ids())
    names = {a.name: a.n_bytes for a in report.kept if a.layer == "encoder.blocks.0.feed_forward"}
    assert names["hidden"] == SAMPLES * LENGTH * 128 * 4


def test_attention_weights_are_kept_for_short_sequences_alone():
    short = nf.step_memory(classifier(), ids(length=64))
    long = nf.step_memory(classifier(), ids())
    assert "attention weights" in {array.name for array in short.kept}
    assert "attention weights" not in {array.name for array in long.kept}


def test_the_model_stays_as_it_is():
    model = classifier()
    before = model.parameters().flat.copy()
    nf.step_memory(model, ids())
    np.testing.assert_array_equal(model.parameters().flat, before)
    assert type(model.parameters().flat) is np.ndarray


def test_the_table_says_all():
    report = nf.step_memory(classifier(), ids(), workers=1)
    table = repr(report)
    for words in ("x W1", "Q, K, V", "gradients, of 1 worker", "micro-batches", "backward pass"):
        assert words in table


@pytest.mark.parametrize("kind", ["classes", "next tokens", "hidden tokens", "pairs"])
def test_targets_may_be_left_out(kind):
    config = nf.EncoderConfig(32, 1, 2, 64, max_len=LENGTH, causal=kind == "next tokens")
    models = {
        "classes": lambda: classifier(),
        "next tokens": lambda: nf.LanguageModel(config, VOCABULARY, seed=0),
        "hidden tokens": lambda: nf.MaskedLanguageModel(config, VOCABULARY, mask_id=3, seed=0),
        "pairs": lambda: nf.EncoderDecoder(config, VOCABULARY, VOCABULARY, seed=0),
    }
    x = (ids(), ids()) if kind == "pairs" else ids()
    assert nf.step_memory(models[kind](), x).peak > 0


class Undecided(nf.layers.Linear):
    def forward(self, x, context):
        raise KeyError("no such number")


def test_a_layer_that_needs_numbers_is_an_error():
    model = classifier()
    model.encoder.blocks[0].feed_forward = Undecided(128, 128, seed=0)
    model.flatten()
    with pytest.raises(RuntimeError, match="no such number"):
        nf.step_memory(model, ids())


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="model"):
        nf.step_memory(nf.layers.Linear(2, 2), np.zeros((1, 2)))
