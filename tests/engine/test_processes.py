"""Copies of a process: what they answer, what they share, and how they end."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from npformer import BatchTooLargeError
from npformer.engine import processes, threads
from npformer.engine.blas import ONE_BLAS_THREAD
from npformer.engine.processes import CannotCopyError, Copies, CopyDiedError, possible, shared_array
from tests.engine.helpers import in_threads, linux_only, refuse_memory
from tests.sampling import usually


@pytest.fixture
def copies():
    """Make copies that are stopped when the test ends."""
    made = []

    def make(n, answer):
        made.append(Copies(n, answer))
        return made[-1]

    yield make
    for some in made:
        some.close()


def answer(some, request=None, k=0):
    """Return what copy k answers."""
    some.ask(k, request)
    return some.answer(k)


def gone(pid):
    """Whether a process ends within some seconds."""
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


# Where --------------------------------------------------------------------------------------------


def test_not_from_a_thread_that_is_not_the_first():
    found = []
    in_threads(1, lambda _: found.append(possible()))
    assert found == [False]


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_not_where_a_process_cannot_be_copied_safely(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert not possible()


@linux_only
def test_here_but_not_in_a_copy(copies):
    assert possible()
    assert answer(copies(1, lambda k, _: possible())) is False


@linux_only
@pytest.mark.parametrize(("daemon", "asked_for"), [(False, True), (True, False)])
def test_in_a_process_that_another_one_made_only_if_asked_for(daemon, asked_for):
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()

    def tell():
        there.send((possible(), possible(asked_for=True)))

    process = fork.Process(target=tell, daemon=daemon)
    with warnings.catch_warnings():  # from Python 3.12 on: other threads are not copied
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    assert here.recv() == (False, asked_for)
    process.join()


# What ---------------------------------------------------------------------------------------------


@linux_only
def test_each_answers_what_it_was_asked(copies):
    some = copies(3, lambda k, request: (k, request * 2, os.getpid()))
    for turn in range(3):
        for k in range(3):
            some.ask(k, 10 * k + turn)
        answers = [some.answer(k) for k in range(3)]
        assert [(k, twice) for k, twice, _ in answers] == [(k, 20 * k + 2 * turn) for k in range(3)]
        assert len({os.getpid(), *(pid for _, _, pid in answers)}) == 4
    assert len(some) == 3


@linux_only
def test_they_begin_with_what_was_there_and_see_no_later_change(copies):
    seen = {"here": 1}
    some = copies(1, lambda k, _: seen)
    seen["here"] = 2
    assert answer(some) == {"here": 1}


@linux_only
@pytest.mark.parametrize(
    ("holder", "name"),
    [(ONE_BLAS_THREAD, "_lock"), (threads, "_pools_lock")],
    ids=["BLAS", "pools"],
)
def test_a_lock_that_another_thread_holds_is_free_in_a_copy(copies, holder, name):
    with getattr(holder, name):
        assert answer(copies(1, lambda k, _: getattr(holder, name).acquire(timeout=1.0)))


@linux_only
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_shared_array_is_seen_from_both_sides(copies, dtype):
    shared, own = shared_array(1000, dtype), np.zeros(3)
    assert (shared.dtype, shared.shape, shared.any()) == (dtype, (1000,), False)

    def double(k, _):
        own[...] = 7.0
        shared[...] *= 2.0

    some = copies(1, double)
    shared[...] = np.arange(1000)
    answer(some)
    np.testing.assert_array_equal(shared, 2.0 * np.arange(1000))
    assert not own.any()


def test_a_shared_array_may_be_empty():
    assert shared_array(0, "float32").shape == (0,)


def test_a_shared_array_that_there_is_no_memory_for_is_a_copy_that_cannot_be_made(monkeypatch):
    refuse_memory(monkeypatch)
    with pytest.raises(CannotCopyError, match=r"no memory to share with copies \(.*Cannot alloc"):
        shared_array(10, "float32")


@linux_only
def test_an_answer_that_nobody_reads_is_no_error(copies, capfd):
    some = copies(1, lambda k, _: None)
    some.ask(0, None)
    assert some._pipes[0].poll(10.0)  # it has answered and waits for the next request
    some._pipes[0].close()
    some._processes[0].join(10.0)
    assert some._processes[0].exitcode == 0
    assert capfd.readouterr().err == ""


# Errors -------------------------------------------------------------------------------------------


@linux_only
def test_an_error_comes_back_with_its_traceback_and_the_copy_goes_on(copies):
    some = copies(1, lambda k, x: 1.0 / x)
    with pytest.raises(ZeroDivisionError) as caught:
        answer(some, 0)
    (note,) = caught.value.__notes__
    assert note.startswith("In a worker process:")
    assert "lambda k, x: 1.0 / x" in note
    assert answer(some, 2) == 0.5


class Particular(Exception):
    """Cannot be made from what it hands to its base class, which is all that pickle knows."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}")


@linux_only
def test_an_error_that_cannot_be_sent_comes_back_in_words(copies):
    def fail(k, _):
        raise Particular("a leak", "the cellar")

    some = copies(1, fail)
    with pytest.raises(RuntimeError, match="Particular: a leak in the cellar") as caught:
        answer(some)
    assert "raise Particular" in caught.value.__notes__[0]


def test_an_error_about_memory_is_sent_whole():
    error = BatchTooLargeError("too large", 7)
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.batch_size) == (BatchTooLargeError, "too large", 7)
    assert again.__notes__ == ["a note"]


@linux_only
def test_an_answer_that_cannot_be_sent_is_an_error_and_the_copy_goes_on(copies):
    some = copies(1, lambda k, hide: (lambda: None) if hide else 5)
    with pytest.raises(RuntimeError, match=r"could not be sent \(.*\): <class 'function'>"):
        answer(some, True)
    assert answer(some, False) == 5


@linux_only
def test_a_copy_that_was_killed_is_named(copies):
    some = copies(2, lambda k, _: os.kill(os.getpid(), signal.SIGKILL) if k else 0)
    for k in range(2):
        some.ask(k, None)
    assert some.answer(0) == 0
    with pytest.raises(CopyDiedError, match=r"worker process 2 of 2 ended .*code -9.*batch_size"):
        some.answer(1)
    with pytest.raises(CopyDiedError, match="worker process 2 of 2 ended"):
        some.ask(1, None)


@linux_only
def test_ctrl_c_is_for_the_original(copies):
    some = copies(1, lambda k, _: os.getpid())
    os.kill(answer(some), signal.SIGINT)
    assert answer(some)


@linux_only
def test_if_one_cannot_be_made_the_others_end(monkeypatch):
    made, fork = [], os.fork

    def fork_once():
        if made:
            raise BlockingIOError("Resource temporarily unavailable")
        made.append(fork())
        return made[0]

    monkeypatch.setattr(os, "fork", fork_once)
    monkeypatch.setattr(processes, "refused", False)
    with pytest.raises(CannotCopyError, match="temporarily unavailable"):
        Copies(2, lambda k, _: None)
    assert gone(made[0])
    assert processes.refused


# The end ------------------------------------------------------------------------------------------


@linux_only
@pytest.mark.parametrize("busy", [False, True])
def test_they_end_when_told_even_at_work(copies, monkeypatch, busy):
    monkeypatch.setattr(processes, "PATIENCE", 0.2)
    some = copies(2, lambda k, seconds: time.sleep(seconds) or os.getpid())
    pids = [answer(some, 0, k) for k in range(2)]
    if busy:
        some.ask(0, 60)
    some.close()
    some.close()  # once more does no harm
    assert all(gone(pid) for pid in pids)
    assert not multiprocessing.active_children()


@linux_only
def test_they_end_when_nobody_holds_them():
    some = Copies(1, lambda k, _: os.getpid())
    pid = answer(some)
    del some
    assert gone(pid)


ABANDONED = """
import os
from npformer.engine.processes import Copies

copies = Copies(2, lambda k, _: os.getpid())
for k in range(2):
    copies.ask(k, None)
    print(copies.answer(k), flush=True)
{ending}
"""


@linux_only
@pytest.mark.parametrize(
    "ending",
    usually(["os.kill(os.getpid(), 9)"], ["", "os._exit(0)", "os.kill(os.getpid(), 9)", "1 / 0"]),
)
def test_they_end_with_the_original_however_it_ends(ending):
    command = [sys.executable, "-W", "ignore", "-c", ABANDONED.format(ending=ending)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    pids = [int(line) for line in done.stdout.split()]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)
