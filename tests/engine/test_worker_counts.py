"""How many workers share a batch, how many threads a call, and what a model costs."""

import numpy as np
import pytest

from npformer import use_kernels
from npformer.engine import EngineContext, blas, snapshot, worker_counts
from npformer.engine import team as engine_team
from npformer.engine.cpu import averaging, tiles
from npformer.engine.snapshot import Cost, cost_of, snapshot_of
from npformer.engine.team import team_of
from npformer.engine.worker_counts import THREAD_SECONDS as THREAD
from npformer.engine.worker_counts import THREAD_TOKENS as TOKENS
from npformer.engine.worker_counts import choose_threads, choose_workers
from tests.engine.helpers import blas_threads

CPU, GPU = "numpy", "cupy"
LONG, SHORT = 1.0, 1e-5
MANY = 100 * TOKENS


@pytest.fixture
def set_cores(monkeypatch):
    """Say how many cores there are."""
    return lambda n: monkeypatch.setattr(worker_counts, "cores", lambda: n)


# Workers ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("workers", "backend", "samples", "tokens", "seconds", "expected"),
    [
        (1, CPU, 64, MANY, LONG, 1),
        (3, CPU, 64, MANY, LONG, 3),
        (3, CPU, 64, 64, SHORT, 3),
        (100, CPU, 5, MANY, LONG, 5),
        ("auto", CPU, 64, MANY, LONG, 8),
        ("auto", CPU, 5, MANY, LONG, 5),
        ("auto", CPU, 1, MANY, LONG, 1),
        ("auto", CPU, 64, MANY, 3.5 * THREAD, 3),
        ("auto", CPU, 64, MANY, 1.5 * THREAD, 1),
        ("auto", CPU, 64, 3 * TOKENS, LONG, 3),
        ("auto", CPU, 64, 2 * TOKENS - 1, LONG, 1),
        ("auto", CPU, 64, MANY, SHORT, 1),
        ("auto", GPU, 64, MANY, LONG, 1),
        (1, GPU, 64, MANY, LONG, 1),
        (np.int64(2), CPU, 64, MANY, LONG, 2),
    ],
)
def test_the_number_of_threads(set_cores, workers, backend, samples, tokens, seconds, expected):
    set_cores(8)
    assert choose_workers(workers, backend, samples, tokens, seconds) == expected


@pytest.mark.parametrize(("counted", "expected"), [(8, 8), (None, 1)])
def test_where_the_system_does_not_say_which_cores_are_ours_all_are(monkeypatch, counted, expected):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: counted)
    assert worker_counts.cores() == expected
    assert choose_workers("auto", CPU, 64, MANY, LONG) == expected


def test_no_more_cores_are_taken_than_are_ours(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda thread: {2, 5, 7}, raising=False)
    assert choose_workers("auto", CPU, 64, MANY, LONG) == 3


NO_NUMBER = r"workers is .*; expected a whole number .* or 'auto'"


@pytest.mark.parametrize(
    ("workers", "backend", "message"),
    [
        *((workers, CPU, NO_NUMBER) for workers in (0, -1, True, 2.0, "2", "many", None)),
        (2, GPU, "workers is 2 on backend 'cupy'; expected 1"),
    ],
)
def test_wrong_numbers_are_refused(workers, backend, message):
    with pytest.raises(ValueError, match=message):
        choose_workers(workers, backend, 64, MANY, LONG)


# Threads that share calls -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("workers", "samples", "length", "expected"),
    [
        ("auto", 1, 4096, 4),
        ("auto", 2, 4096, 4),
        ("auto", 3, 4096, 1),  # workers have more than half of the cores
        ("auto", 1, 512, 1),  # products are most of the cost
        ("auto", 1, 64, 1),
        (2, 1, 4096, 2),
        (2, 2, 4096, 1),
        (1, 1, 4096, 1),
    ],
)
def test_threads_share_long_calls(set_cores, small_model, workers, samples, length, expected):
    set_cores(4)
    model = small_model(d_model=128, d_ff=512)
    assert choose_threads(workers, snapshot_of(model), CPU, samples, length) == expected


@pytest.mark.parametrize(
    ("mixer", "expected"),
    [("attention", 4), ("dense_synthesizer", 4), ("mixture", 1), ("fourier", 1)],
)
def test_threads_share_calls_where_all_mixers_do(set_cores, small_model, mixer, expected):
    set_cores(4)
    model = small_model(mixer=[mixer, "attention"], n_layers=2)
    assert choose_threads("auto", snapshot_of(model), CPU, 1, 1 << 14) == expected


def test_where_no_threads_share_calls(set_cores, small_model):
    set_cores(4)
    snapshot, one_head = snapshot_of(small_model()), snapshot_of(small_model(n_heads=1))
    long = 1 << 14
    assert choose_threads("auto", snapshot, CPU, 1, long) == 4
    assert choose_threads("auto", snapshot, GPU, 1, long) == 1
    assert choose_threads("auto", one_head, CPU, 1, long) == 1
    assert choose_threads("auto", one_head, CPU, 2, long) == 1
    with use_kernels(False):
        assert choose_threads("auto", snapshot, CPU, 1, long) == 1


# Cost ---------------------------------------------------------------------------------------------
def test_a_synthesizers_table_costs_by_pairs(small_model):
    short, long = (
        cost_of(small_model(mixer="dense_synthesizer", d_model=64, n_heads=4, max_len=n))
        for n in (8, 2000)
    )
    assert long.pair == short.pair
    assert long.token < 2 * short.token  # a bias of each head is as wide as its table


def test_cost_grows_with_the_batch(small_model):
    cost = cost_of(small_model())
    assert cost.seconds(200, 6) == pytest.approx(2 * cost.seconds(100, 6))


def test_cost_grows_with_the_model(small_model):
    small, large = cost_of(small_model()), cost_of(small_model(d_model=16))
    assert large.seconds(100, 6) > small.seconds(100, 6)


@pytest.mark.parametrize(("mixer", "grows"), [("attention", 1), ("mixture", 1), ("fourier", 0)])
def test_cost_grows_with_the_square_of_the_length_where_tokens_meet(small_model, mixer, grows):
    cost = cost_of(small_model(mixer=mixer))
    assert (cost.seconds(1, 200) > 2.001 * cost.seconds(1, 100)) == bool(grows)


def test_a_large_table_that_is_looked_up_costs_nothing(small_model):
    expected = cost_of(small_model())
    assert cost_of(small_model(vocab_size=5000)) == expected
    assert cost_of(small_model(positions="learned", max_len=5000)) == expected


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "mixture", "fourier"])
def test_a_block_that_acts_several_times_costs_each_time(small_model, mixer):
    models = (small_model(mixer=mixer, n_layers=6, share_layers=share) for share in (True, False))
    shared, apart = map(cost_of, models)
    assert shared == apart
    assert shared.token > 0.0


@pytest.fixture
def threads_of_calls(monkeypatch):
    """Let threads share calls however little they do; return how many threads each call had."""
    monkeypatch.setattr(worker_counts, "PAIR_SECONDS", 0.0)
    monkeypatch.setattr(snapshot, "cost_of", lambda model: Cost(0.0, 1e-9))
    thread_counts, map_slices = [], EngineContext.map_slices

    def note_threads(self, *arguments):
        thread_counts.append(self.threads)
        return map_slices(self, *arguments)

    monkeypatch.setattr(EngineContext, "map_slices", note_threads)
    return thread_counts


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer"])
@pytest.mark.parametrize("number", [2, 3])
def test_they_change_no_number(small_model, threads_of_calls, rng, monkeypatch, mixer, number):
    monkeypatch.setattr(averaging, "tiling_of", tiles.Tiling)  # which keeps none of other sizes
    monkeypatch.setattr(tiles, "SCORES", 1)  # a head at a time, as in long sequences
    ids, labels = rng.integers(0, 7, (1, 40)), np.array([2])
    mask = np.arange(40)[None] < 33
    results = []
    for workers in (1, number, number):
        model = small_model(mixer=mixer, d_model=16, d_ff=32, max_len=40, dropout=0.2)
        threads_of_calls.clear()
        loss, gradients = model.loss_and_gradients(ids, labels, mask, workers=workers, seed=3)
        assert set(threads_of_calls) == {workers}
        with team_of(model, workers) as team:
            logits = team.forward(model.upload(model.check(ids, mask=mask)))
        assert set(threads_of_calls) == {workers}
        results.append([loss, gradients.flat, logits])
    for one, other, again in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(again, other)


def test_they_predict_all_samples_at_once(small_model, threads_of_calls, rng, monkeypatch, sizes):
    """They are few, and with fewer at a time there may be fewer heads than threads."""
    monkeypatch.setattr(engine_team, "PREDICTED_AT_ONCE", 1)
    model = small_model()
    with team_of(model, 4) as team:
        team.forward(model.check(rng.integers(0, 7, (2, 6))))
    assert sizes == [2]
    assert set(threads_of_calls) == {4}


@pytest.mark.usefixtures("threads_of_calls")
def test_blas_has_one_thread(small_model, rng, call_on_share, two_blas_threads, monkeypatch):
    if not two_blas_threads:
        pytest.skip("NumPy's BLAS is none that threadpoolctl knows")
    thread_counts = []
    call_on_share(lambda batch, context: thread_counts.append(blas_threads()))
    monkeypatch.setattr(blas, "BLAS_SECONDS", 0.0)
    small_model().loss_and_gradients(rng.integers(0, 7, (1, 6)), np.array([1]), workers=2)
    assert blas_threads() == two_blas_threads
    assert {threads for counts in thread_counts for threads in counts} == {1}
