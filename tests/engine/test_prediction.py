"""Predictions: in parts, and in copies of the process."""

import multiprocessing
import os
import subprocess
import sys
import time
from unittest.mock import Mock

import numpy as np
import pytest

from npformer import BatchTooLargeError
from npformer.engine import processes, worker_counts
from npformer.engine import team as engine_team
from npformer.engine.processes import CannotCopyError, in_processes
from npformer.engine.worker_counts import choose_workers
from npformer.models import SequenceModel
from tests.engine.helpers import blas_threads, linux_only, refuse_fork
from tests.sampling import usually

pytestmark = pytest.mark.usefixtures("many_cores")


@pytest.fixture
def ids(rng):
    return rng.integers(0, 7, (8, 6))


@pytest.fixture
def eager(monkeypatch):
    """Let every prediction be worth copies."""
    monkeypatch.setattr(worker_counts, "COPY_SECONDS", 1e-9)
    monkeypatch.setattr(worker_counts, "COPIES_FROM_TOKENS", 0)
    monkeypatch.setattr(worker_counts, "COPIES_FROM_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("tokens", "some"), [(1, [1] * 8), (18, [3, 3, 2]), (48, [8]), (1000, [8])]
)
def test_tokens_predicted_at_a_time(small_model, token_batch, monkeypatch, sizes, tokens, some):
    model, (ids, _, mask) = small_model(), token_batch
    expected = model(ids, mask)
    sizes.clear()
    monkeypatch.setattr(engine_team, "PREDICTED_AT_ONCE", tokens)
    np.testing.assert_allclose(model(ids, mask), expected, rtol=0, atol=1e-13)
    assert sizes == some


@linux_only
@pytest.mark.parametrize("batch_size", usually([2, 256], [1, 2, 4, 256]))
@pytest.mark.parametrize(
    "changes",
    [{}, {"pooling": "none"}, {"output": "sigmoid", "n_classes": 2}, {"n_token_types": 2}],
)
def test_copies_predict_what_threads_predict(small_model, ids, rng, changes, batch_size):
    model, mask = small_model(**changes), np.arange(6) < rng.integers(1, 7, 8)[:, None]
    types = rng.integers(0, 2, (8, 6)) if "n_token_types" in changes else None
    given = ids, mask, batch_size, types
    expected = model.predict_probabilities(*given, processes=False)
    found = model.predict_probabilities(*given, processes=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(model.predict(*given, processes=True), expected.argmax(axis=-1))
    assert not multiprocessing.active_children()


@linux_only
def test_copies_predict_with_the_weights_of_the_moment(small_model, ids):
    model = small_model()
    before = model.predict_probabilities(ids, processes=True)
    model.parameters()["classify.bias"][0] += 100.0
    assert (model.predict(ids, processes=True) == 0).all()
    assert not (before.argmax(axis=-1) == 0).all()


@linux_only
def test_a_copy_computes_on_one_blas_thread(small_model, ids, monkeypatch, two_blas_threads):
    model = small_model()
    forward = SequenceModel.forward

    def noted(self, x, context):
        _, cache = forward(self, x, context)
        place = os.getpid(), len(x), *blas_threads()
        return np.tile(np.array(place, float), (len(x), 1)), cache

    monkeypatch.setattr(SequenceModel, "forward", noted)
    monkeypatch.setattr("npformer.functional.softmax", lambda logits: (logits, None))
    found = model.predict_probabilities(ids[:7], batch_size=256, processes=True)
    assert blas_threads() == two_blas_threads
    assert found[:, 1].tolist() == [2, 2, 2, 2, 3, 3, 3]
    assert len(set(found[:, 0])) == 3
    assert found[0, 0] == os.getpid()
    assert (found[:, 2:] == 1).all()


COUNTING = """
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from npformer.engine.processes import in_processes


def multiply_and_count_threads(k):
    ones = np.ones((400, 400), "float32")
    assert (ones @ ones == 400.0).all()  # worth several threads
    return len(list(Path("/proc/self/task").iterdir()))


with threadpool_limits(limits=2, user_api="blas"):
    multiply_and_count_threads(0)
    print(in_processes(multiply_and_count_threads, 3)[1:])
"""


@linux_only
def test_a_copy_starts_no_threads_of_blas():
    """OpenBLAS answers any call after a fork by starting threads that look for something to do.

    Counted in a new process, without other threads: after any transform, SciPy's FFT (from 1.18 on)
    keeps a pool that it starts anew in each copy. Its threads sleep, but would count.
    """
    command = [sys.executable, "-c", COUNTING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[1, 1]\n", done.stderr


@linux_only
@pytest.mark.parametrize(
    ("tokens", "seconds", "worth"), [(2400, 0.0, True), (2401, 0.0, False), (2400, 1000.0, False)]
)
@pytest.mark.usefixtures("eager")
def test_long_predictions_make_copies(small_model, rng, monkeypatch, tokens, seconds, worth):
    model, ids = small_model(), rng.integers(0, 7, (400, 6))
    monkeypatch.setattr(worker_counts, "COPIES_FROM_TOKENS", tokens)
    monkeypatch.setattr(worker_counts, "COPIES_FROM_SECONDS", seconds)
    copies = Mock(wraps=processes.Copies)
    monkeypatch.setattr(processes, "Copies", copies)
    expected = model.predict(ids, processes=False)
    assert not copies.called
    np.testing.assert_array_equal(model.predict(ids), expected)
    assert [call.args[0] for call in copies.mock_calls] == ([2] if worth else [])


@linux_only
def test_in_each_process_auto_is_one_worker():
    def workers(k):
        return choose_workers("auto", "numpy", samples=64, tokens=1 << 20, seconds=1.0)

    assert in_processes(workers, 2) == [1, 1]
    assert workers(0) == 3


@linux_only
def test_no_more_samples_at_a_time_than_asked_for(small_model, ids, sizes):
    model = small_model()
    for batch_size, some in ((1, [1, 1]), (2, [2]), (8, [2])):  # two of the eight are here
        sizes.clear()
        model.predict(ids, batch_size=batch_size, processes=True)
        assert sizes == some


# Errors -------------------------------------------------------------------------------------------


@linux_only
def test_an_error_in_a_copy_is_the_callers(small_model, ids):
    model = small_model()
    expected = model.predict(ids)
    wrong = ids.copy()
    wrong[-1, -1] = 7
    with pytest.raises(ValueError, match="x holds 7; expected"):
        model.predict(wrong, processes=True)
    assert not multiprocessing.active_children()
    np.testing.assert_array_equal(model.predict(ids, processes=True), expected)


@linux_only
@pytest.mark.usefixtures("eager")
def test_threads_predict_where_the_system_makes_no_process(small_model, ids, monkeypatch):
    model = small_model()
    expected = model.predict(ids, processes=False)
    fork = refuse_fork(monkeypatch)
    for _ in range(3):  # it is asked once: each attempt leaves open files behind
        np.testing.assert_array_equal(model.predict(ids), expected)
    fork.assert_called_once()
    with pytest.raises(CannotCopyError, match=r"no more processes .*processes=False computes"):
        model.predict(ids, processes=True)


@linux_only
@pytest.mark.parametrize("error", [TimeoutError("too late"), KeyboardInterrupt()])
def test_an_error_here_ends_copies_and_is_no_refusal(small_model, ids, monkeypatch, error):
    model, calls, here = small_model(), [], os.getpid()

    def failing(self, x, context):
        if os.getpid() != here:
            time.sleep(60)
        calls.append(True)
        raise error

    before = blas_threads()
    with monkeypatch.context() as patch:
        patch.setattr(SequenceModel, "forward", failing)
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
def test_a_copy_without_memory_says_which_batch_to_try(small_model, rng, monkeypatch):
    model, ids = small_model(), rng.integers(0, 7, (12, 6))
    forward = SequenceModel.forward

    def failing(self, x, context):
        if (x == ids[-len(x) :]).all():
            raise MemoryError("no memory for the last rows")
        return forward(self, x, context)

    monkeypatch.setattr(SequenceModel, "forward", failing)
    with pytest.raises(BatchTooLargeError, match=r"last rows.*Try batch_size=2") as caught:
        model.predict(ids, batch_size=12, processes=True)
    assert caught.value.batch_size == 4  # of each of three processes


def test_processes_are_true_false_or_auto(small_model, ids, monkeypatch):
    model = small_model()
    for asked in ("yes", 1, None):
        with pytest.raises(ValueError, match=r"processes is .*; expected True, False or 'auto'"):
            model.predict(ids, processes=asked)
    monkeypatch.setattr("npformer.engine.processes.possible", lambda asked_for: False)
    with pytest.raises(ValueError, match="processes is True; expected False or 'auto' here"):
        model.predict(ids, processes=True)
    assert model.predict(ids, processes="auto").shape == (8,)
