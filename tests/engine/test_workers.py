"""Worker threads: how many, what they sum to, and what they leave behind."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from npformer import MIXERS, Adam, BatchTooLargeError, classifier, use_kernels
from npformer.engine import EngineContext, memory, processes, tree, workers, workspace
from npformer.engine.cpu import averaging
from npformer.engine.kept import kept_of
from npformer.engine.processes import CannotCopyError
from npformer.engine.tree import Work, tree_of, work
from npformer.engine.workers import Team, choose, choose_processes, choose_threads, one_blas_thread
from npformer.losses import SoftmaxCrossEntropy

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")

CPU, GPU = "numpy", "cupy"
LONG, SHORT = 1.0, 1e-5
MANY = 100 * workers.THREAD_TOKENS


@pytest.fixture(params=["sequences", "tokens", "no label in the second half"])
def batch(request, small_model, rng):
    """Make a float64 model and a batch of any size for it."""

    def make(n, **changes):
        ids, mask = rng.integers(0, 7, (n, 6)), np.arange(6) < rng.integers(1, 7, n)[:, None]
        if request.param == "sequences":
            return small_model(**changes), ids, rng.integers(0, 3, n), mask
        labels = np.where(rng.random((n, 6)) < 0.5, -1, rng.integers(0, 3, (n, 6)))
        if request.param.startswith("no label"):
            labels[n // 2 :] = -1
        return small_model(pooling="none", **changes), ids, labels, mask

    return make


def blas_threads():
    """Return how many threads NumPy's BLAS has; SciPy may bring another, which nobody calls."""
    found = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    of_numpy = [entry for entry in found if "numpy" in entry["filepath"]]
    return [entry["num_threads"] for entry in of_numpy or found]


# How many -----------------------------------------------------------------------------------------


THREAD, TOKENS, COPY = workers.THREAD_SECONDS, workers.THREAD_TOKENS, workers.COPY_SECONDS


@pytest.mark.parametrize(
    ("asked", "backend", "samples", "tokens", "seconds", "expected"),
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
def test_the_number_of_threads(monkeypatch, asked, backend, samples, tokens, seconds, expected):
    monkeypatch.setattr(workers, "cores", lambda: 8)
    assert choose(asked, backend, samples, tokens, seconds) == expected


@pytest.mark.parametrize(
    ("asked", "samples", "seconds", "expected"),
    [("auto", 64, LONG, 8), ("auto", 5, LONG, 5), ("auto", 64, 3.5 * COPY, 3), (2, 64, SHORT, 2)],
)
def test_for_copies_less_work_is_enough_and_few_tokens_are(
    monkeypatch, asked, samples, seconds, expected
):
    monkeypatch.setattr(workers, "cores", lambda: 8)
    assert choose(asked, CPU, samples, 64, seconds, processes=True) == expected
    assert expected == 2 or choose(asked, CPU, samples, 64, seconds) == 1


@pytest.mark.parametrize(("counted", "expected"), [(8, 8), (None, 1)])
def test_where_nobody_says_which_cores_are_ours_all_are(monkeypatch, counted, expected):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: counted)
    assert workers.cores() == expected
    assert choose("auto", CPU, 64, MANY, LONG) == expected


def test_of_more_cores_than_are_ours_no_more_are_taken(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda thread: {2, 5, 7}, raising=False)
    assert choose("auto", CPU, 64, MANY, LONG) == 3


@pytest.mark.parametrize("asked", [0, -1, True, 2.0, "2", "many", None])
def test_anything_but_a_number_or_auto_is_refused(asked):
    with pytest.raises(ValueError, match=r"workers is .*; expected a whole number .* or 'auto'"):
        choose(asked, CPU, 64, MANY, LONG)


def test_a_gpu_takes_no_workers():
    with pytest.raises(ValueError, match="workers is 2 on backend 'cupy'; expected 1"):
        choose(2, GPU, 64, MANY, LONG)


@pytest.mark.parametrize(
    ("asked", "samples", "length", "expected"),
    [
        ("auto", 1, 4096, 4),
        ("auto", 2, 4096, 4),
        ("auto", 3, 4096, 1),  # workers have more than half of the cores
        ("auto", 1, 512, 1),  # products are most of the work
        ("auto", 1, 64, 1),
        (2, 1, 4096, 2),
        (2, 2, 4096, 1),
        (1, 1, 4096, 1),
    ],
)
def test_threads_share_the_calls_of_a_few_long_sequences(
    monkeypatch, small_model, asked, samples, length, expected
):
    monkeypatch.setattr(workers, "cores", lambda: 4)
    model = small_model(d_model=128, d_ff=512)
    assert choose_threads(asked, tree_of(model), CPU, samples, length) == expected


@pytest.mark.parametrize(
    ("mixer", "expected"),
    [("attention", 4), ("dense_synthesizer", 4), ("mixture", 1), ("fourier", 1)],
)
def test_threads_share_calls_only_where_all_mixers_compute_in_parts(
    monkeypatch, small_model, mixer, expected
):
    monkeypatch.setattr(workers, "cores", lambda: 4)
    model = small_model(mixer=[mixer, "attention"], n_layers=2)
    assert choose_threads("auto", tree_of(model), CPU, 1, 1 << 14) == expected


def test_where_no_threads_share_calls(monkeypatch, small_model):
    monkeypatch.setattr(workers, "cores", lambda: 4)
    model, one_head = small_model(), small_model(n_heads=1)
    assert choose_threads("auto", tree_of(model), CPU, 1, 1 << 14) == 4
    assert choose_threads("auto", tree_of(model), GPU, 1, 1 << 14) == 1
    assert choose_threads("auto", tree_of(one_head), CPU, 1, 1 << 14) == 1
    assert choose_threads("auto", tree_of(one_head), CPU, 2, 1 << 14) == 1
    with workers.sharing_among(2):
        assert choose_threads("auto", tree_of(model), CPU, 1, 1 << 14) == 1
    with use_kernels(False):
        assert choose_threads("auto", tree_of(model), CPU, 1, 1 << 14) == 1


def test_a_prediction_of_a_few_long_sequences_is_shared_by_threads(monkeypatch, small_model):
    monkeypatch.setattr(workers, "cores", lambda: 4)
    model = small_model()
    fits = processes.possible()
    for samples, expected in ((1, 1), (2, 1), (3, 3 if fits else 1), (9, 4 if fits else 1)):
        assert choose_processes("auto", model, samples, 1 << 15) == expected


def test_a_synthesizers_table_is_work_by_pairs(small_model):
    changes = {"mixer": "dense_synthesizer", "d_model": 64, "n_heads": 4}
    short, long = (work(small_model(**changes, max_len=n)) for n in (8, 2000))
    assert long.pair == short.pair
    assert long.token < 2 * short.token  # a bias of each head is as wide as its table


def test_work_grows_with_the_model_and_with_the_batch(small_model):
    small, large = work(small_model()), work(small_model(d_model=16))
    assert small.of(200, 6) == pytest.approx(2 * small.of(100, 6))
    assert large.of(100, 6) > small.of(100, 6)


@pytest.mark.parametrize(("mixer", "grows"), [("attention", 1), ("mixture", 1), ("fourier", 0)])
def test_work_grows_with_the_square_of_the_length_where_tokens_meet_in_pairs(
    small_model, mixer, grows
):
    of_model = work(small_model(mixer=mixer))
    assert (of_model.of(1, 200) > 2.001 * of_model.of(1, 100)) == bool(grows)


def test_a_large_table_that_is_looked_up_is_no_work(small_model):
    expected = work(small_model())
    assert work(small_model(vocab_size=5000)) == expected
    assert work(small_model(positions="learned", max_len=5000)) == expected


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "mixture", "fourier"])
def test_a_block_that_acts_several_times_is_work_each_time(small_model, mixer):
    shared, apart = (
        work(small_model(mixer=mixer, n_layers=6, share_layers=shared)) for shared in (True, False)
    )
    assert shared == apart
    assert shared.token > 0.0


# What they sum to ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "number"), [(8, 2), (5, 2), (5, 3), (4, 4), (3, 64)])
def test_the_parts_sum_to_the_whole_batch(batch, n, number):
    model, x, y, mask = batch(n)
    loss, gradients = model.loss_and_gradients(x, y, mask, label_smoothing=0.1)
    summed_loss, summed = model.loss_and_gradients(x, y, mask, workers=number, label_smoothing=0.1)
    assert summed_loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert list(summed) == list(gradients)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(summed[name], gradient, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("mixer", MIXERS)
def test_the_parts_sum_to_the_whole_batch_whatever_mixes(small_model, token_batch, mixer):
    model = small_model(mixer=mixer, padding="per_length")
    loss, gradients = model.loss_and_gradients(*token_batch)
    summed_loss, summed = model.loss_and_gradients(*token_batch, workers=2)
    assert summed_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-12)


def test_a_single_logit_sums_up_too(small_model, rng):
    model = small_model(n_classes=2, output="sigmoid")
    x, y = rng.integers(0, 7, (5, 6)), rng.integers(0, 2, 5)
    loss, gradients = model.loss_and_gradients(x, y)
    summed_loss, summed = model.loss_and_gradients(x, y, workers=2)
    assert summed_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-13)


def test_a_batch_without_any_label_has_no_loss_and_no_gradients(small_model, rng):
    model, x = small_model(pooling="none"), rng.integers(0, 7, (4, 6))
    for number in (1, 2):
        loss, gradients = model.loss_and_gradients(x, np.full((4, 6), -1), workers=number)
        assert loss == 0.0
        np.testing.assert_array_equal(gradients.flat, 0.0)


def test_the_parts_are_of_one_precision(small_model, rng):
    model = small_model(dtype="float32")
    _, gradients = model.loss_and_gradients(rng.integers(0, 7, (4, 6)), np.arange(4) % 3)
    with Team(model, 2) as team:
        summed_loss, summed = team.step(
            model.batch(rng.integers(0, 7, (4, 6)), np.arange(4) % 3), generator=None
        )
    assert summed_loss.dtype == summed.flat.dtype == gradients.flat.dtype == "float32"


def test_a_team_may_be_given_batches_of_any_size(small_model, rng):
    model = small_model()
    with Team(model, 3) as team:
        for n in (1, 2, 7, 3, 1):
            x, y = rng.integers(0, 7, (n, 6)), rng.integers(0, 3, n)
            alone, gradients = model.loss_and_gradients(x, y)
            loss, summed = team.step(model.batch(x, y), generator=None)
            assert float(loss) == pytest.approx(alone, rel=1e-12)
            np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-13)


# Some samples at a time ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("micro_batch", [1, 2, 3, 7, 8, 100])
def test_micro_batches_sum_to_the_whole_batch(batch, micro_batch, number):
    model, x, y, mask = batch(7)
    loss, gradients = model.loss_and_gradients(x, y, mask, label_smoothing=0.1)
    summed_loss, summed = model.loss_and_gradients(
        x, y, mask, label_smoothing=0.1, workers=number, micro_batch=micro_batch
    )
    assert summed_loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(summed.flat, gradients.flat, rtol=0, atol=1e-13)


@pytest.mark.parametrize("micro_batch", [1, 3, 100])
def test_a_team_predicts_in_micro_batches_what_it_predicts_at_once(batch, micro_batch):
    model, x, _, mask = batch(7)
    for number in (1, 2):
        with Team(model, number, micro_batch) as team:
            np.testing.assert_allclose(
                team.forward(model.batch(x, mask=mask)), model(x, mask), rtol=0, atol=1e-13
            )


def test_micro_batches_bound_the_memory(small_model, rng):
    model = small_model(d_model=32, d_ff=64, max_len=64)
    x, y = rng.integers(0, 7, (16, 64)), np.arange(16) % 3
    held = {}
    for micro_batch in (None, 8, 2):
        workspaces = []
        with Team(model, 1, micro_batch, workspaces) as team:
            for _ in range(3):
                team.step(model.batch(x, y), generator=None)
        (workspace,) = workspaces
        held[micro_batch] = workspace.n_bytes
    assert held[8] < 0.6 * held[None]
    assert held[2] < 0.2 * held[None]


@pytest.mark.parametrize("micro_batch", [0, -1, 2.0, "2", True])
def test_a_micro_batch_that_is_no_number_of_samples_is_refused(small_model, micro_batch):
    with pytest.raises(ValueError, match=r"micro_batch is .*; expected a whole number"):
        Team(small_model(), 1, micro_batch)


@pytest.fixture
def shared_calls(monkeypatch):
    """Let threads share calls however little they do; return how many did."""
    monkeypatch.setattr(workers, "PAIR_SECONDS", 0.0)
    monkeypatch.setattr(tree, "work", lambda model: Work(0.0, 1e-9))
    seen, in_parts = [], EngineContext.in_parts

    def noted(self, *arguments):
        seen.append(self.threads)
        return in_parts(self, *arguments)

    monkeypatch.setattr(EngineContext, "in_parts", noted)
    return seen


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer"])
@pytest.mark.parametrize("number", [2, 3])
def test_threads_that_share_calls_change_no_number(
    small_model, shared_calls, rng, monkeypatch, mixer, number
):
    monkeypatch.setattr(averaging, "SCORES", 1)  # a head at a time, as in long sequences
    changes = {"mixer": mixer, "d_model": 16, "d_ff": 32, "max_len": 40, "dropout": 0.2}
    ids, labels = rng.integers(0, 7, (1, 40)), np.array([2])
    mask = np.arange(40)[None] < 33
    results = []
    for workers_asked in (1, number, number):
        model = small_model(**changes)
        shared_calls.clear()
        loss, gradients = model.loss_and_gradients(ids, labels, mask, workers=workers_asked, seed=3)
        assert set(shared_calls) == {workers_asked}
        with memory.team_of(model, workers_asked) as team:
            logits = team.forward(model.batch(ids, mask=mask))
        assert set(shared_calls) == {workers_asked}
        results.append([loss, gradients.flat, logits])
    for one, other, again in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(again, other)


def test_threads_that_share_calls_predict_all_samples_at_once(
    small_model, shared_calls, rng, monkeypatch, sizes
):
    """They are few, and with fewer at a time there may be fewer heads than threads."""
    monkeypatch.setattr(workers, "PREDICTED_AT_ONCE", 1)
    model = small_model()
    with memory.team_of(model, 4) as team:
        team.forward(model.batch(rng.integers(0, 7, (2, 6))))
    assert sizes == [2]
    assert set(shared_calls) == {4}


def test_threads_that_share_calls_hold_blas_to_one_thread(
    small_model, shared_calls, rng, monkeypatch
):
    model = small_model()
    if not blas_threads():
        pytest.skip("NumPy's BLAS is none that threadpoolctl knows")
    seen = watch_blas(monkeypatch)
    monkeypatch.setattr(workers, "BLAS_SECONDS", 0.0)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        model.loss_and_gradients(rng.integers(0, 7, (1, 6)), np.array([1]), workers=2)
        assert blas_threads() == before
    assert {threads for each in seen for threads in each} == {1}


@linux_only
def test_processes_that_are_insisted_on_share_samples(small_model, shared_calls, rng):
    model = small_model()
    ids, labels = rng.integers(0, 7, (2, 6)), np.array([1, 2])
    for insisted, n_threads in ((True, 1), (False, 4)):
        shared_calls.clear()
        with Team(model, 4, processes=insisted) as team:
            team.step(model.batch(ids, labels), generator=None)
        assert set(shared_calls) == {n_threads}


def test_overflow_in_a_thread_that_shares_calls_is_no_warning(small_model, shared_calls, rng):
    model = small_model(d_model=16, d_ff=32, dtype="float32")
    for value in model.parameters().values():
        value *= 1e25
    loss, _ = model.loss_and_gradients(rng.integers(0, 7, (1, 6)), np.array([1]), workers=2)
    assert set(shared_calls) == {2}
    assert not np.isfinite(loss)


# The same again -----------------------------------------------------------------------------------


def trained(model, n_workers, steps=4, micro_batch=None, samples=9, processes=False):
    """Return a model's weights, as one array, after some steps with dropout."""
    rng, generator = np.random.default_rng(1), np.random.default_rng(2)
    optimizer = Adam(model.parameters(), lr=1e-2)
    with Team(model, n_workers, micro_batch, processes=processes) as team:
        for _ in range(steps):
            x, y = rng.integers(0, 7, (samples, 24)), rng.integers(0, 3, samples)
            mask = np.arange(24) < rng.integers(1, 25, samples)[:, None]
            _, gradients = team.step(model.batch(x, y, mask), generator=generator)
            optimizer.step(gradients)
    return model.parameters().flat.copy()


@pytest.fixture
def larger_model(small_model, monkeypatch):
    """Make a model most of whose arrays are lent: smaller ones are always new."""
    monkeypatch.setattr(workspace, "SMALL", 1 << 11)

    def make(**changes):
        return small_model(**({"d_model": 16, "d_ff": 64, "max_len": 24, "dropout": 0.2} | changes))

    return make


@pytest.mark.parametrize(
    ("number", "micro_batch", "dtype"),
    [(1, None, "float64"), (2, None, "float32"), (3, None, "float32"), (2, 2, "float32")],
)
def test_a_run_repeats_bit_for_bit(larger_model, number, micro_batch, dtype):
    runs = [trained(larger_model(dtype=dtype), number, micro_batch=micro_batch) for _ in range(3)]
    np.testing.assert_array_equal(runs[1], runs[0])
    np.testing.assert_array_equal(runs[2], runs[0])
    assert np.isfinite(runs[0]).all()


def test_larger_models_lend(larger_model, rng):
    model = larger_model(dtype="float32")
    with Team(model, 3) as team:
        batch = model.batch(rng.integers(0, 7, (9, 24)), rng.integers(0, 3, 9))
        team.step(batch, generator=rng)
        assert all(lends.n_bytes > 1 << 15 for lends in team._workspaces)


# Copies of the process ----------------------------------------------------------------------------


@linux_only
@pytest.mark.parametrize(("number", "micro_batch"), [(1, None), (2, None), (3, 2), (100, None)])
@pytest.mark.parametrize("changes", [{}, {"padding": "per_length"}, {"mixer": "dense_synthesizer"}])
def test_processes_and_threads_are_the_same_run_bit_for_bit(
    larger_model, number, micro_batch, changes
):
    runs = [
        trained(larger_model(**changes), number, micro_batch=micro_batch, processes=processes)
        for processes in (False, True)
    ]
    np.testing.assert_array_equal(runs[1], runs[0])


@linux_only
def test_processes_are_told_all_of_a_batch(small_model, rng):
    model = small_model(pooling="none", n_token_types=2)
    ids, types = rng.integers(0, 7, (9, 6)), rng.integers(0, 2, (9, 6))
    labels, mask = rng.integers(-1, 3, (9, 6)), np.arange(6) < rng.integers(1, 7, 9)[:, None]
    loss, gradients = model.loss_and_gradients(ids, labels, mask, types=types, label_smoothing=0.1)
    smoothed = SoftmaxCrossEntropy(label_smoothing=0.1)
    with Team(model, 3, processes=True, loss=smoothed) as team:
        found, summed = team.step(model.batch(ids, labels, mask, types), generator=None)
        assert len(multiprocessing.active_children()) == 2
    assert float(found) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(summed.flat, gradients.flat, rtol=0, atol=1e-13)
    assert not multiprocessing.active_children()


@linux_only
def test_a_team_of_processes_may_be_given_batches_of_any_size(small_model, rng):
    model = small_model()
    with Team(model, 3, processes=True) as team:
        for n in (2, 1, 7, 3, 1, 5):
            x, y = rng.integers(0, 7, (n, 6)), rng.integers(0, 3, n)
            alone, gradients = model.loss_and_gradients(x, y)
            loss, summed = team.step(model.batch(x, y), generator=None)
            assert float(loss) == pytest.approx(alone, rel=1e-12)
            np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-13)


@linux_only
def test_an_error_in_a_process_reaches_the_caller_and_the_next_step_is_right(
    small_model, monkeypatch, rng
):
    model, x, y = small_model(), rng.integers(0, 7, (6, 6)), np.arange(6) % 3
    expected = model.loss_and_gradients(x, y)[1].flat
    accumulate = workers.accumulate

    def failing(model, loss, batch, *arguments, **options):
        ids, labels = batch.x, batch.y
        if labels[-1] == 2 and ids.shape[0] == 2 and (ids == x[4:]).all():
            raise MemoryError("no memory in the last part")
        return accumulate(model, loss, batch, *arguments, **options)

    with Team(model, 3, processes=True) as team:
        with monkeypatch.context() as patch:
            patch.setattr(workers, "accumulate", failing)
            with pytest.raises(BatchTooLargeError, match="no memory in the last part") as caught:
                team.step(model.batch(x, y), generator=None)
            assert "In a worker process" in caught.value.__cause__.__notes__[0]
        assert not multiprocessing.active_children()
        for _ in range(3):
            _, gradients = team.step(model.batch(x, y), generator=None)
            np.testing.assert_allclose(gradients.flat, expected, rtol=0, atol=1e-13)


@linux_only
def test_processes_hold_blas_to_one_thread_and_leave_the_callers_limit(small_model, monkeypatch):
    model, x, y = small_model(), np.zeros((4, 6), int), np.arange(4) % 3
    accumulate = workers.accumulate

    def noted(*arguments, **options):
        if multiprocessing.parent_process() is not None and blas_threads() != [1]:
            raise RuntimeError(f"BLAS has {blas_threads()} threads")
        return accumulate(*arguments, **options)

    monkeypatch.setattr(workers, "accumulate", noted)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with Team(model, 2, processes=True) as team:
            for _ in range(2):
                team.step(model.batch(x, y), generator=None)
                assert blas_threads() == before


@pytest.mark.parametrize("asked", ["yes", 1, None, 2.0])
def test_processes_are_true_false_or_auto(small_model, asked):
    with pytest.raises(ValueError, match=r"processes is .*; expected True, False or 'auto'"):
        Team(small_model(), 2, processes=asked)


def test_processes_where_there_can_be_none(small_model, monkeypatch):
    monkeypatch.setattr("npformer.engine.processes.possible", lambda asked_for: False)
    with pytest.raises(ValueError, match="processes is True; expected False or 'auto' here"):
        Team(small_model(), 2, processes=True)
    model = small_model()
    with Team(model, 2, processes="auto") as team:
        team.step(model.batch(np.zeros((4, 6), int), np.arange(4) % 3), generator=None)
    assert not multiprocessing.active_children()


@linux_only
def test_threads_work_where_the_system_makes_no_process(small_model, monkeypatch):
    model, x, y = small_model(), np.zeros((4, 6), int), np.arange(4) % 3
    expected = model.loss_and_gradients(x, y, workers=2)[1].flat
    refusing_fork(monkeypatch)
    with Team(model, 2, processes="auto") as team:
        for _ in range(2):
            _, gradients = team.step(model.batch(x, y), generator=None)
            np.testing.assert_array_equal(gradients.flat, expected)
    with Team(model, 2, processes=True) as team, pytest.raises(CannotCopyError):
        team.step(model.batch(x, y), generator=None)


@linux_only
def test_threads_work_where_there_is_no_memory_to_share(small_model, monkeypatch):
    def refused(*arguments):
        raise OSError(12, "Cannot allocate memory")

    model, x, y = small_model(), np.zeros((4, 6), int), np.arange(4) % 3
    expected = model.loss_and_gradients(x, y, workers=2)[1].flat
    monkeypatch.setattr("npformer.engine.processes.mmap.mmap", refused)
    with Team(model, 2, processes="auto") as team:
        _, gradients = team.step(model.batch(x, y), generator=None)
        np.testing.assert_array_equal(gradients.flat, expected)


@linux_only
def test_parameters_in_several_pieces_are_left_to_threads(small_model):
    model = small_model()
    model.classify = type(model.classify)(*model.classify.weight.shape, seed=0, dtype="float64")
    with pytest.raises(ValueError, match="lie in one buffer"):
        Team(model, 2, processes=True)
    with Team(model, 2, processes="auto") as team:
        team.step(model.batch(np.zeros((4, 6), int), np.arange(4) % 3), generator=None)


# Copies that predict ------------------------------------------------------------------------------


@pytest.fixture
def many_cores(monkeypatch):
    monkeypatch.setattr(workers, "cores", lambda: 3)


@linux_only
@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize("batch_size", [1, 2, 4, 256])
@pytest.mark.parametrize(
    "changes",
    [{}, {"pooling": "none"}, {"output": "sigmoid", "n_classes": 2}, {"n_token_types": 2}],
)
def test_copies_predict_what_threads_predict(small_model, rng, changes, batch_size):
    model, n = small_model(**changes), 8
    ids, mask = rng.integers(0, 7, (n, 6)), np.arange(6) < rng.integers(1, 7, n)[:, None]
    types = rng.integers(0, 2, (n, 6)) if "n_token_types" in changes else None
    given = ids, mask, batch_size, types
    expected = model.predict_probabilities(*given, processes=False)
    found = model.predict_probabilities(*given, processes=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert found.dtype == expected.dtype
    labels = model.predict(*given, processes=True)
    np.testing.assert_array_equal(labels, expected.argmax(axis=-1))
    assert not multiprocessing.active_children()


@linux_only
@pytest.mark.usefixtures("many_cores")
def test_copies_predict_with_the_weights_of_the_moment(small_model, rng):
    model, ids = small_model(), rng.integers(0, 7, (8, 6))
    before = model.predict_probabilities(ids, processes=True)
    model.parameters()["classify.bias"][0] += 100.0
    assert (model.predict(ids, processes=True) == 0).all()
    assert not (before.argmax(axis=-1) == 0).all()


@linux_only
@pytest.mark.usefixtures("many_cores")
def test_each_copy_computes_its_part_on_one_blas_thread_and_the_limit_comes_back(
    small_model, rng, monkeypatch
):
    model, ids = small_model(), rng.integers(0, 7, (7, 6))
    forward = type(model).forward

    def noted(self, x, context):
        _, cache = forward(self, x, context)
        place = os.getpid(), len(x), *blas_threads()
        return np.tile(np.array(place, float), (len(x), 1)), cache

    monkeypatch.setattr(type(model), "forward", noted)
    monkeypatch.setattr("npformer.functional.softmax", lambda logits: (logits, None))
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        found = model.predict_probabilities(ids, batch_size=256, processes=True)
        assert blas_threads() == before
    assert found[:, 1].tolist() == [2, 2, 2, 2, 3, 3, 3]
    assert len(set(found[:, 0])) == 3
    assert found[0, 0] == os.getpid()
    assert (found[:, 2:] == 1).all()


COUNTING = """
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from npformer.engine import workers


def multiply_and_count_threads(k):
    ones = np.ones((400, 400), "float32")
    assert (ones @ ones == 400.0).all()  # worth several threads
    return len(list(Path("/proc/self/task").iterdir()))


with threadpool_limits(limits=2, user_api="blas"):
    multiply_and_count_threads(0)
    print(workers.in_processes(multiply_and_count_threads, 3)[1:])
"""


@linux_only
def test_a_copy_starts_no_threads_of_blas():
    """Where OpenBLAS is told anything after a fork, it starts threads that look for work.

    Counted in a new process, where nobody else has threads: after any transform, SciPy's FFT (from
    1.18 on) keeps a pool that it starts anew in each copy. Its threads sleep, but they would count.
    """
    command = [sys.executable, "-c", COUNTING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[1, 1]\n", done.stderr


@linux_only
@pytest.mark.usefixtures("many_cores")
def test_an_error_in_a_copy_that_predicts_is_the_callers(small_model, rng):
    model, ids = small_model(), rng.integers(0, 7, (8, 6))
    expected = model.predict(ids)
    wrong = ids.copy()
    wrong[-1, -1] = 7
    with pytest.raises(ValueError, match="x holds 7; expected"):
        model.predict(wrong, processes=True)
    assert not multiprocessing.active_children()
    np.testing.assert_array_equal(model.predict(ids, processes=True), expected)


@linux_only
@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize(
    ("tokens", "seconds", "worth"),
    [(2400, 0.0, True), (2401, 0.0, False), (2400, 1000.0, False)],
)
def test_predictions_of_some_length_make_copies_by_themselves(
    small_model, rng, monkeypatch, tokens, seconds, worth
):
    model, ids, made = small_model(), rng.integers(0, 7, (400, 6)), []
    monkeypatch.setattr(workers, "COPY_SECONDS", 1e-9)
    monkeypatch.setattr(workers, "COPIES_FROM_TOKENS", tokens)
    monkeypatch.setattr(workers, "COPIES_FROM_SECONDS", seconds)

    def noted(n, *others):
        made.append(n)
        return processes.Copies(n, *others)

    monkeypatch.setattr(workers, "Copies", noted)
    expected = model.predict(ids, processes=False)
    assert not made
    np.testing.assert_array_equal(model.predict(ids), expected)
    assert made == ([2] if worth else [])


@linux_only
@pytest.mark.usefixtures("many_cores")
def test_no_more_samples_at_a_time_than_asked_for(small_model, rng, sizes):
    model, ids = small_model(), rng.integers(0, 7, (8, 6))
    for batch_size, some in ((1, [1, 1]), (2, [2]), (8, [2])):  # two of the eight are here
        sizes.clear()
        model.predict(ids, batch_size=batch_size, processes=True)
        assert sizes == some


@pytest.fixture
def sizes(monkeypatch):
    """Note how many samples are computed at a time in this process."""
    seen, forward = [], classifier.SequenceClassifier.forward

    def noted(self, x, context):
        seen.append(len(x))
        return forward(self, x, context)

    monkeypatch.setattr(classifier.SequenceClassifier, "forward", noted)
    return seen


@pytest.mark.parametrize(
    ("tokens", "some"), [(1, [1] * 8), (18, [3, 3, 2]), (48, [8]), (1000, [8])]
)
def test_a_worker_predicts_about_so_many_tokens_at_a_time(
    small_model, token_batch, monkeypatch, sizes, tokens, some
):
    model, (ids, _, mask) = small_model(), token_batch
    expected = model(ids, mask)
    sizes.clear()
    monkeypatch.setattr(workers, "PREDICTED_AT_ONCE", tokens)
    np.testing.assert_allclose(model(ids, mask), expected, rtol=0, atol=1e-13)
    assert sizes == some


def refusing_fork(monkeypatch):
    """Let the system refuse every new process; return a list with an entry for each attempt."""
    attempts = []

    def fork():
        attempts.append(True)
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    monkeypatch.setattr(processes, "refused", False)
    return attempts


@linux_only
@pytest.mark.usefixtures("many_cores")
def test_threads_predict_where_the_system_makes_no_process(small_model, rng, monkeypatch):
    model, ids = small_model(), rng.integers(0, 7, (8, 6))
    expected = model.predict(ids)
    monkeypatch.setattr(workers, "COPY_SECONDS", 1e-9)
    monkeypatch.setattr(workers, "COPIES_FROM_TOKENS", 0)
    monkeypatch.setattr(workers, "COPIES_FROM_SECONDS", 0.0)
    attempts = refusing_fork(monkeypatch)
    for _ in range(3):  # it is asked once: each attempt leaves open files behind
        np.testing.assert_array_equal(model.predict(ids), expected)
    assert len(attempts) == 1
    with pytest.raises(CannotCopyError, match=r"no more processes .*processes=False computes"):
        model.predict(ids, processes=True)


@linux_only
@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize("error", [TimeoutError("too late"), KeyboardInterrupt()])
def test_an_error_here_ends_copies_at_once_and_is_not_taken_for_a_refusal(
    small_model, rng, monkeypatch, error
):
    model, ids, calls, here = small_model(), rng.integers(0, 7, (8, 6)), [], os.getpid()

    def failing(self, x, context):
        if os.getpid() != here:
            time.sleep(60)
        calls.append(True)
        raise error

    before = blas_threads()
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "forward", failing)
        patch.setattr(processes, "PATIENCE", 60.0)
        began = time.monotonic()
        with pytest.raises(type(error)):
            model.predict(ids, processes=True)
    assert time.monotonic() - began < 10.0
    assert len(calls) == 1
    assert not multiprocessing.active_children()
    assert blas_threads() == before
    assert model.predict(ids).shape == (8,)


@linux_only
@pytest.mark.usefixtures("many_cores")
def test_a_copy_without_memory_says_which_batch_to_try(small_model, rng, monkeypatch):
    model, ids = small_model(), rng.integers(0, 7, (12, 6))
    forward = type(model).forward

    def failing(self, x, context):
        if (x == ids[-len(x) :]).all():
            raise MemoryError("no memory for the last rows")
        return forward(self, x, context)

    monkeypatch.setattr(type(model), "forward", failing)
    with pytest.raises(BatchTooLargeError, match=r"last rows.*Try batch_size=2") as caught:
        model.predict(ids, batch_size=12, processes=True)
    assert caught.value.batch_size == 4  # of each of three processes


def test_predictions_refuse_what_is_no_way_to_work(small_model, rng, monkeypatch):
    model, ids = small_model(), rng.integers(0, 7, (8, 6))
    for asked in ("yes", 1, None):
        with pytest.raises(ValueError, match=r"processes is .*; expected True, False or 'auto'"):
            model.predict(ids, processes=asked)
    monkeypatch.setattr("npformer.engine.processes.possible", lambda asked_for: False)
    with pytest.raises(ValueError, match="processes is True; expected False or 'auto' here"):
        model.predict(ids, processes=True)
    assert model.predict(ids, processes="auto").shape == (8,)


# Threads beside threads ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer"])
def test_two_threads_that_train_two_models_at_once_get_what_each_gets_alone(
    larger_model, mixer, number
):
    seeds = [0, 1]
    alone = [trained(larger_model(mixer=mixer, seed=seed), number) for seed in seeds]
    together = [None, None]

    def run(i):
        together[i] = trained(larger_model(mixer=mixer, seed=seeds[i]), number)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    np.testing.assert_array_equal(together[0], alone[0])
    np.testing.assert_array_equal(together[1], alone[1])


def test_memory_stays_with_the_model_and_is_lent_to_one_call_at_a_time(small_model, monkeypatch):
    model, x, y = small_model(), np.zeros((8, 6), int), np.arange(8) % 3
    for _ in range(3):
        model.loss_and_gradients(x, y, workers=2)
        model(x)
    shelf = kept_of(model).workspaces
    assert [len(team) for team in shelf] == [2]
    held, left, accumulate = shelf[0], [], workers.accumulate

    def noted(*arguments, **options):
        left.append(list(shelf))
        if len(left) == 1:
            model(x)  # a call within a call, as from another thread
        return accumulate(*arguments, **options)

    monkeypatch.setattr(workers, "accumulate", noted)
    model.loss_and_gradients(x, y)
    assert left == [[]]
    assert kept_of(model).workspaces is shelf
    assert len(shelf) == 2
    assert held in shelf


def test_threads_that_share_a_model_get_what_each_gets_alone(larger_model):
    model = larger_model(pooling="none", dropout=0.0)
    rng = np.random.default_rng(0)
    batches = [(rng.integers(0, 7, (9, 24)), rng.integers(0, 3, (9, 24))) for _ in range(4)]
    alone = [(model(x), model.loss_and_gradients(x, y)[1].flat) for x, y in batches]
    wrong = []

    def run(i):
        (x, y), (logits, gradients) = batches[i], alone[i]
        for _ in range(10):
            same = np.array_equal(model(x), logits)
            same &= np.array_equal(model.loss_and_gradients(x, y)[1].flat, gradients)
            wrong.extend([] if same else [i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


# Dropout ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 3])
def test_dropout_is_the_same_for_the_same_seed(batch, number):
    model, x, y, mask = batch(5, dropout=0.3)
    runs = [model.loss_and_gradients(x, y, mask, workers=number, seed=seed) for seed in (3, 3, 4)]
    assert runs[0][0] == runs[1][0] != runs[2][0]
    np.testing.assert_array_equal(runs[0][1].flat, runs[1][1].flat)


def test_each_worker_draws_its_own_dropout(small_model, monkeypatch):
    model = small_model(dropout=0.3)
    drawn, accumulate = [], workers.accumulate

    def noted(model, loss, batch, context, *arguments, **options):
        drawn.append(context.generator.bit_generator.state["state"]["state"])
        return accumulate(model, loss, batch, context, *arguments, **options)

    monkeypatch.setattr(workers, "accumulate", noted)
    model.loss_and_gradients(np.zeros((6, 6), int), np.zeros(6, int), workers=3, seed=0)
    assert len(set(drawn)) == 3


# What they leave behind ---------------------------------------------------------------------------


def watch_blas(monkeypatch, error=None):
    """Note BLAS's threads inside a step, and raise an error there."""
    seen, accumulate = [], workers.accumulate

    def noted(*arguments, **options):
        seen.append(blas_threads())
        if error is not None:
            raise error
        return accumulate(*arguments, **options)

    monkeypatch.setattr(workers, "accumulate", noted)
    return seen


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("error", [None, ZeroDivisionError(), KeyboardInterrupt()])
def test_blas_has_one_thread_inside_and_its_own_number_afterwards(
    small_model, token_batch, monkeypatch, number, error
):
    model, (x, y, mask) = small_model(), token_batch
    if not blas_threads():
        pytest.skip("NumPy's BLAS is none that threadpoolctl knows")
    seen = watch_blas(monkeypatch, error)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        if error is None:
            model.loss_and_gradients(x, y, mask, workers=number)
        else:
            with pytest.raises(type(error)):
                model.loss_and_gradients(x, y, mask, workers=number)
        assert blas_threads() == before
    until_an_error = seen if error is None else seen[:1]
    assert {threads for each in until_an_error for threads in each} == {1}


def test_a_model_with_much_work_keeps_blas_as_it_is(small_model, token_batch, monkeypatch):
    model, (x, y, mask) = small_model(), token_batch
    seen = watch_blas(monkeypatch)
    monkeypatch.setattr(workers, "BLAS_SECONDS", 0.0)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        model.loss_and_gradients(x, y, mask, workers=1)
    assert seen == [before]


def test_a_gpu_leaves_blas_alone():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread(GPU, SHORT, 1):
            assert blas_threads() == before


def test_gradients_that_were_returned_are_not_overwritten(small_model, token_batch):
    model, (x, y, mask) = small_model(), token_batch
    for number in (1, 2):
        _, gradients = model.loss_and_gradients(x, y, mask, workers=number)
        kept = gradients.flat.copy()
        model.loss_and_gradients(x[::-1].copy(), y, mask, workers=number)
        np.testing.assert_array_equal(gradients.flat, kept)


@pytest.mark.parametrize("number", [1, 2])
def test_results_that_were_returned_are_not_overwritten(larger_model, rng, number):
    """Results too large to be made anew lie in memory that is lent, and stay there."""
    model = larger_model(pooling="none", dropout=0.0, n_classes=10, max_len=48)
    x, y = rng.integers(0, 7, (16, 48)), rng.integers(0, 10, (16, 48))
    mask = np.arange(48) < rng.integers(1, 49, 16)[:, None]

    def everything():
        loss, gradients = model.loss_and_gradients(x, y, mask, workers=number)
        logits = model(x, mask)
        assert logits.nbytes > workspace.SMALL
        view = model(x, mask)[3:5, ::2]
        probabilities, labels = model.predict_probabilities(x, mask), model.predict(x, mask)
        return [np.array(loss), gradients.flat, logits, view, probabilities, labels]

    first = everything()
    kept = [a.copy() for a in first]
    x = x[::-1].copy()
    second = everything()
    for one, copy, other in zip(first, kept, second, strict=True):
        np.testing.assert_array_equal(one, copy)
        assert not np.shares_memory(one, other)


def test_a_step_overwrites_the_teams_own_gradients_and_a_copy_keeps_them(small_model, token_batch):
    model, (x, y, mask) = small_model(), token_batch
    with Team(model, 2) as team:
        _, gradients = team.step(model.batch(x, y, mask), generator=None)
        kept, before = gradients.copy(), gradients.flat.copy()
        _, later = team.step(model.batch(x[::-1].copy(), y, mask), generator=None)
    assert later is gradients
    np.testing.assert_array_equal(kept.flat, before)
    assert (later.flat != before).any()


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="only Linux lets a thread choose its cores"
)
def test_workers_have_cores_of_their_own_and_the_caller_keeps_its_cores(
    small_model, token_batch, monkeypatch
):
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("with one core there is nothing to share out")
    model, (x, y, mask) = small_model(), token_batch
    both, seen, accumulate = threading.Barrier(2, timeout=30), {}, workers.accumulate

    def noted(*arguments, **options):
        both.wait()  # or one thread might do the work of both
        seen[threading.current_thread().name] = os.sched_getaffinity(0)
        return accumulate(*arguments, **options)

    monkeypatch.setattr(workers, "accumulate", noted)
    model.loss_and_gradients(x, y, mask, workers=2)
    assert os.sched_getaffinity(0) == cores
    one, other = seen.values()
    assert all(name.startswith("npformer") for name in seen)
    assert one | other == cores
    assert not one & other


FORK = """
import os, sys
import numpy as np
from npformer import EncoderConfig, SequenceClassifier

config = EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6, dropout=0.1)
model = SequenceClassifier(config, 3, vocab_size=7)
x, y = np.arange(48).reshape(8, 6) % 7, np.arange(8) % 3

def step():
    return model.loss_and_gradients(x, y, workers=2, seed=0)[1].flat

before = step()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(step(), before) else 3)
_, status = os.waitpid(child, 0)
assert np.array_equal(step(), before)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_threads_that_work():
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def fail_in_one(monkeypatch, seconds):
    """Let the worker that has sample 0 fail at once, and the others take their time."""
    accumulate, done = workers.accumulate, []

    def noted(model, loss, batch, *arguments, **options):
        if batch.x[0, 0] == 0:
            raise ZeroDivisionError("sample 0")
        time.sleep(seconds)
        result = accumulate(model, loss, batch, *arguments, **options)
        done.append(True)
        return result

    monkeypatch.setattr(workers, "accumulate", noted)
    return done


@pytest.mark.parametrize("number", [2, 3])
def test_an_error_reaches_the_caller_when_nobody_works_any_more(small_model, monkeypatch, number):
    """Else the others would still write into what the next step begins with."""
    model, x, y = small_model(), np.arange(36).reshape(6, 6) % 7, np.arange(6) % 3
    x[:, 0] = [0, 1, 2, 3, 4, 5]
    expected = model.loss_and_gradients(x, y)[1].flat
    with Team(model, number) as team:
        with monkeypatch.context() as patch:
            done = fail_in_one(patch, 0.1)
            with pytest.raises(ZeroDivisionError, match="sample 0"):
                team.step(model.batch(x, y), generator=None)
            assert len(done) == number - 1
        for _ in range(3):
            _, gradients = team.step(model.batch(x, y), generator=None)
            np.testing.assert_allclose(gradients.flat, expected, rtol=0, atol=1e-13)


def test_an_error_in_prediction_leaves_a_model_that_works(small_model, monkeypatch, rng):
    model, x = small_model(), rng.integers(0, 7, (8, 6))
    expected, forward = model(x), type(model).forward

    def failing(self, x, context):
        forward(self, x, context)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "forward", failing)
        with pytest.raises(ZeroDivisionError):
            model(x)
    np.testing.assert_array_equal(model(x), expected)


def test_overlapping_steps_restore_the_blas_limit_when_the_last_one_ends():
    with threadpool_limits(limits=2, user_api="blas"):
        before, inside, leave = blas_threads(), threading.Event(), threading.Event()

        def other():
            with one_blas_thread(CPU, SHORT, 1):
                inside.set()
                leave.wait(30)

        thread = threading.Thread(target=other)
        with one_blas_thread(CPU, SHORT, 1):
            thread.start()
            assert inside.wait(30)
        assert set(blas_threads()) <= {1}
        leave.set()
        thread.join(30)
        assert blas_threads() == before


def test_any_thread_may_hold_blas_to_one_thread_after_another_did():
    before, inside = blas_threads(), []
    with one_blas_thread(CPU, SHORT, 1):
        pass

    def other():
        with one_blas_thread(CPU, SHORT, 1):
            inside.extend(blas_threads())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(30)
    assert set(inside) <= {1}
    assert blas_threads() == before
    with threadpool_limits(limits=1, user_api="blas"):
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_an_error_in_a_worker_is_the_callers(small_model, token_batch):
    with pytest.raises(ValueError, match="dropout needs a random generator"):
        small_model(dropout=0.3).loss_and_gradients(*token_batch, workers=2)


def test_overflow_in_a_worker_is_no_warning(small_model, token_batch):
    model, (x, y, mask) = small_model(), token_batch
    for parameter in model.parameters().values():
        parameter[...] = 1e300
    for number in (1, 2):
        loss, _ = model.loss_and_gradients(x, y, mask, workers=number)
        assert not np.isfinite(loss)
