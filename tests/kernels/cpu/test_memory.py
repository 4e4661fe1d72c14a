"""Later steps allocate almost nothing, and attention needs no memory for length^2 scores."""

import gc
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import npformer as nf
from npformer.engine import EngineContext
from npformer.engine.cpu import rows
from npformer.engine.cpu.attention import attention_heads, attention_heads_backward
from npformer.engine.cpu.fourier import fourier_mixing
from npformer.engine.cpu.tiles import TILE
from npformer.engine.team import Team
from npformer.engine.twin_classes import model_cache


@contextmanager
def trace_memory():
    """Count memory from here on; NumPy tells `tracemalloc` what it asks for."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def peak_of(run):
    """Return by how much memory rose, at its highest, above what it was before."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    run()
    return tracemalloc.get_traced_memory()[1] - before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mixer", "workers"),
    [("attention", 1), ("dense_synthesizer", 1), ("fourier", 1), ("attention", 2)],
)
def test_a_training_step_uses_its_memory_again(mixer, workers):
    config = nf.EncoderConfig(
        d_model=64, n_layers=1, n_heads=4, d_ff=256, max_len=64, mixer=mixer, dropout=0.1
    )
    model = nf.SequenceClassifier(config, n_classes=10, vocab_size=100)
    optimizer, generator = nf.Adam(model.parameters()), np.random.default_rng(0)
    x, y = generator.integers(0, 100, (8, 64)), generator.integers(0, 10, 8)
    workspaces = []

    def step():
        _, gradients = team.step(model.batch(x, y), generator=generator)
        optimizer.step(gradients)

    model.loss_and_gradients(x, y, seed=0)  # imports what the first call imports
    with Team(model, workers, workspaces=workspaces) as team, trace_memory():
        first = peak_of(step)
        for _ in range(3):
            step()
        held = [workspace.n_bytes for workspace in workspaces]
        peaks = []
        for _ in range(20):
            peaks.append(peak_of(step))
            assert [workspace.n_bytes for workspace in workspaces] == held
    assert len(held) == workers
    assert min(held) > 1e6
    share = 0.15 if workers == 1 else 0.2  # two workers, and two small arrays at the same moment
    assert max(peaks) < share * first, (max(peaks), first)


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "fourier"])
def test_prediction_uses_its_memory_again(mixer, monkeypatch):
    monkeypatch.setattr(rows._memory, "space", np.empty(0, "float32"))  # as in a new thread
    config = nf.EncoderConfig(d_model=64, n_layers=2, n_heads=4, d_ff=256, max_len=64, mixer=mixer)
    model = nf.SequenceClassifier(config, n_classes=10, n_features=7)
    x = np.random.default_rng(0).normal(size=(8, 64, 7)).astype("float32")
    with trace_memory():
        first = peak_of(lambda: model(x))
        model(x)
        later = max(peak_of(lambda: model(x)) for _ in range(10))
    assert later < 0.15 * first, (later, first)


def test_prediction_needs_less_memory_than_a_training_step(small_config):
    model = nf.SequenceClassifier(
        small_config(d_model=32, n_layers=6, d_ff=128, max_len=64), n_classes=3, n_features=7
    )
    x = np.random.default_rng(0).normal(size=(16, 64, 7)).astype("float32")
    held = []
    for run in (lambda: model(x), lambda: model.loss_and_gradients(x, np.zeros(16, int))):
        shelf = model_cache(model).workspaces
        shelf.clear()
        run()
        held.append(shelf[0][0].n_bytes)
    assert held[0] < 0.25 * held[1]


def peak_of_attention(length, store):
    """Return how much memory both passes of one head take at most beside their input."""
    d, rng = 32, np.random.default_rng(0)
    maps = [rng.normal(size=s).astype("float32") / 6.0 for s in 3 * [(d, d), (d,)]]
    x = rng.normal(size=(1, length, d)).astype("float32")
    context = EngineContext(mask=np.arange(length)[None] < length - 100)

    def forward_and_backward():
        y, cache = attention_heads(x, *maps, 1, False, store, context=context)
        attention_heads_backward(y, cache)

    return peak_of(forward_and_backward)


def test_attention_that_stores_nothing_needs_memory_in_proportion_to_the_length():
    with trace_memory(), threadpool_limits(limits=1, user_api="blas"):
        peak_of_attention(1024, store=False)  # compiles what several tiles need as well
        peaks = [peak_of_attention(length, store=False) for length in (512, 1024, 2048, 4096)]
    growth = np.divide(peaks[1:], peaks[:-1])
    assert (growth < 2.3).all(), growth
    assert peaks[-1] < 4096 * 4096 * 4 / 4  # a quarter of one array of scores
    assert TILE < 1024, "the lengths above are to have several tiles"


def test_fourier_mixing_holds_no_more_than_a_piece_beside_its_result():
    x = np.random.default_rng(0).normal(size=(256, 64, 64)).astype("float32")
    with trace_memory():
        fourier_mixing(x, context=EngineContext())
        peak = peak_of(lambda: fourier_mixing(x, context=EngineContext()))
    assert x.size >= 4 * rows.CHUNK
    assert peak - x.nbytes < 16 * rows.CHUNK  # complex numbers of 8 bytes: a half before, one after


def test_stored_weights_need_the_square_of_the_length():
    """This is what the test of attention without them would notice."""
    with trace_memory():
        peak_of_attention(TILE, store=True)  # scratch memory, which stays
        stored_bytes = [
            peak_of_attention(TILE, store=True) - peak_of_attention(TILE, store=False),
            peak_of_attention(TILE // 2, store=True) - peak_of_attention(TILE // 2, store=False),
        ]
    assert stored_bytes[0] > 3.0 * stored_bytes[1] > 0.0


def test_sequences_longer_than_a_tile_store_no_weights():
    with trace_memory():
        peak_of_attention(2 * TILE, store=True)  # scratch memory, which stays
        peaks = [peak_of_attention(2 * TILE, store=store) for store in (True, False)]
    assert peaks[0] < 1.1 * peaks[1]
