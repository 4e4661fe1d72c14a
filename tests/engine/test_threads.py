"""Threads that compute side by side."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from npformer.engine import EngineContext as Context
from npformer.engine import threads
from npformer.engine.threads import side_by_side, slices


@pytest.mark.parametrize(
    ("n_rows", "n", "sizes"),
    [(7, 1, [7]), (7, 2, [3, 4]), (8, 3, [2, 3, 3]), (2, 5, [1, 1]), (1, 3, [1]), (0, 3, [0])],
)
def test_slices_are_all_rows_together(n_rows, n, sizes):
    row_slices = slices(n_rows, n)
    assert row_slices == Context(threads=n).map_slices(lambda rows: rows, n_rows)
    assert [rows.stop - rows.start for rows in row_slices] == sizes
    numbers = np.arange(n_rows)
    np.testing.assert_array_equal(np.concatenate([numbers[rows] for rows in row_slices]), numbers)


def test_results_come_in_order_each_from_a_thread_of_its_own():
    all_here = threading.Barrier(3, timeout=30)

    def do(number):
        all_here.wait()
        time.sleep(0.01 * (3 - number))
        return number, threading.get_ident()

    numbers, idents = zip(*side_by_side(do, [0, 1, 2]), strict=True)
    assert numbers == (0, 1, 2)
    assert len(set(idents)) == 3
    assert threading.get_ident() not in idents


def test_one_thread_is_the_callers():
    results = Context().map_slices(lambda rows: (rows, threading.get_ident()), 5)
    assert results == [(slice(0, 5), threading.get_ident())]
    assert side_by_side(lambda number: threading.get_ident(), [0]) == [threading.get_ident()]
    assert Context(threads=4).map_slices(lambda rows: rows, 1) == [slice(0, 1)]


def test_a_thread_of_a_pool_that_asks_for_threads_computes_there():
    """Threads of a pool that wait for others of it could wait for ever."""

    def here(number):
        return threading.get_ident()

    for thread, inner_threads in side_by_side(
        lambda _: (here(0), side_by_side(here, [0, 1])), [0, 1]
    ):
        assert thread != here(0)
        assert inner_threads == [thread, thread]


def test_an_interrupt_while_threads_are_asked_waits_for_those_that_compute(monkeypatch):
    finished, task_numbers, pool = [], count(), threads.thread_pool(2)
    begun = threading.Event()

    def do(number):
        begun.set()
        time.sleep(0.1)
        finished.append(number)

    def submit(task):
        if next(task_numbers) == 1:
            begun.wait(30)  # for the first task
            raise KeyboardInterrupt
        return pool.submit(task)

    monkeypatch.setattr(threads, "thread_pool", lambda n: SimpleNamespace(submit=submit))
    with pytest.raises(KeyboardInterrupt):
        side_by_side(do, [0, 1])
    assert finished == [0]


def test_where_not_all_threads_can_be_started_the_caller_computes_alone(monkeypatch):
    start, thread_numbers = threading.Thread.start, count()

    def refuse_second(thread):
        if next(thread_numbers) == 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threads, "_pools", {})
    monkeypatch.setattr(threads, "_refused", set())
    before = threading.active_count()
    here = [(number, threading.get_ident()) for number in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse_second)
        for _ in range(2):  # the second time, nothing is tried
            assert side_by_side(lambda number: (number, threading.get_ident()), [0, 1, 2]) == here
    assert next(thread_numbers) == 2
    wait_for_threads(before)
    monkeypatch.setattr(threads, "_refused", set())
    test_results_come_in_order_each_from_a_thread_of_its_own()


def wait_for_threads(n):
    """Wait until there are no more than n threads."""
    until = time.monotonic() + 30
    while threading.active_count() > n:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_forked_from_a_thread_of_a_pool_is_no_thread_of_it():
    def inside_a_child(number):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads are not copied
            child = os.fork()
        if child == 0:
            os._exit(int(threads._this_thread.is_in_pool))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert side_by_side(inside_a_child, [0]) == [0]


def test_what_the_caller_said_about_overflow_holds_in_the_threads():
    def overflow(number):
        return np.float32(1e30) * np.full(2, 1e30, np.float32)

    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        side_by_side(overflow, [0, 1])
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("error")
        assert np.isinf(side_by_side(overflow, [0, 1])).all()


@pytest.fixture
def new_thread(monkeypatch):
    """Forget what this thread knows about itself, and restore it."""
    monkeypatch.setattr(threads, "_this_thread", threads._ThisThread())


@pytest.mark.parametrize(
    ("cores", "n", "expected"),
    [
        ({0, 1}, 2, [{0}, {1}]),
        ({9, 1, 4, 5, 7}, 2, [{1, 5, 9}, {4, 7}]),
        ({3, 4, 5}, 3, [{3}, {4}, {5}]),
        ({3, 4}, 3, []),
    ],
)
def test_a_thread_begins_tasks_on_every_nth_core(monkeypatch, new_thread, cores, n, expected):
    limits = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: cores, raising=False)
    monkeypatch.setattr(
        os,
        "sched_setaffinity",
        lambda thread, first_cores: limits.append((thread, first_cores)),
        raising=False,
    )
    for number in range(n):
        threads._join_pool(number, n)
        threads._move_to_first_cores()
    assert limits == [pair for first_cores in expected for pair in ((0, first_cores), (0, cores))]


def test_cores_that_are_taken_away_meanwhile_are_no_error(monkeypatch, new_thread):
    refuse = Mock(side_effect=OSError("Invalid argument"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: {0, 1}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    threads._join_pool(0, 2)
    threads._move_to_first_cores()
    assert refuse.called


def test_where_threads_cannot_choose_their_cores_nothing_happens(monkeypatch, new_thread):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    threads._join_pool(0, 2)
    threads._move_to_first_cores()


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="only Linux lets a thread choose its cores"
)
def test_what_a_pool_s_thread_starts_or_loads_may_use_all_cores():
    """A BLAS counts the cores of the thread that loads it, once; processes inherit them."""
    command = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]

    def inherit(number):
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        return len(os.sched_getaffinity(0)), len(elsewhere[0]), int(process.stdout)

    n = len(os.sched_getaffinity(0))
    assert side_by_side(inherit, [0, 1]) == [(n, n, n)] * 2


def test_a_handler_of_a_signal_may_compute_side_by_side():
    """It runs in the main thread, which may be waiting for the same pool, or starting it."""
    results = []

    def handle(signum, frame):
        results.append(side_by_side(lambda number: number, [1, 2]))

    def do(number):
        if number == 0:
            signal.raise_signal(signal.SIGTERM)  # runs in the main thread, which waits
        time.sleep(0.02)
        return number

    before = signal.signal(signal.SIGTERM, handle)
    try:
        assert side_by_side(do, [0, 3]) == [0, 3]
        with threads._pools_lock:
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert results == [[1, 2]] * 2


@pytest.mark.processes
def test_a_training_in_a_thread_goes_on_when_the_main_thread_has_ended():
    script = """
import threading, time
import numpy as np
import npformer as nf

def fit():
    threading.main_thread().join()
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=4)
    model = nf.SequenceClassifier(config, 2, n_features=3, seed=0)
    x = np.random.default_rng(0).normal(size=(8, 4, 3)).astype("float32")
    history = nf.fit(model, (x, np.arange(8) % 2), epochs=2, workers=2, progress=False)
    print(len(history.train_loss))

threading.Thread(target=fit).start()
"""
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (process.stdout.strip(), process.stderr) == ("2", "")
