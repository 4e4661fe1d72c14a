"""Reading ahead: the right samples, each read once, by a thread if reads are slow."""

import os
import threading
import time
import warnings

import numpy as np
import pytest

from npformer.data import read_ahead
from npformer.data.read_ahead import ReadAhead


class Files:
    """Replaces files: records which rows were read, and by which thread."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds
        self.reads = []

    def read(self, rows):
        self.reads.append((np.arange(20)[rows].tolist(), threading.current_thread().name))
        time.sleep(self.seconds)
        return np.arange(20)[rows] * 2


@pytest.fixture
def always_ahead(monkeypatch):
    monkeypatch.setattr(read_ahead, "SLOW_READ", 0.0)


def is_reader(name):
    return name.startswith("npformer-reader")


def test_expected_rows_are_read_once_by_a_thread(always_ahead):
    files = Files()
    reader = ReadAhead()
    batches = np.arange(20).reshape(5, 4)
    for k, rows in enumerate(batches):
        np.testing.assert_array_equal(reader.get(files.read, rows.copy()), 2 * rows)
        if k < 4:
            reader.expect(files.read, batches[k + 1].copy)
    assert [rows for rows, _ in files.reads] == batches.tolist()
    assert [is_reader(name) for _, name in files.reads] == [False, True, True, True, True]


def test_other_rows_than_expected(always_ahead):
    files = Files()
    reader = ReadAhead()
    reader.expect(files.read, np.arange(3).copy)
    np.testing.assert_array_equal(reader.get(files.read, np.arange(4)), 2 * np.arange(4))
    np.testing.assert_array_equal(reader.get(files.read, slice(2, 5)), [4, 6, 8])


def test_the_expected_rows_of_other_files(always_ahead):
    files = Files()
    other_files = Files()
    reader = ReadAhead()
    reader.expect(files.read, np.arange(3).copy)
    reader.get(other_files.read, np.arange(3))
    assert len(other_files.reads) == 1


def test_one_read_at_a_time(always_ahead):
    events = []
    begun = threading.Event()
    reader = ReadAhead()

    def read(rows):
        events.append("begins")
        begun.set()
        time.sleep(0.05)
        events.append("ends")

    reader.expect(read, np.arange(3).copy)
    begun.wait(30)
    reader.get(read, slice(0, 1))
    assert events == ["begins", "ends"] * 2  # the thread's read ends first


def test_a_read_that_is_no_longer_needed_does_not_begin(always_ahead):
    files = Files()
    reader = ReadAhead()
    holding = threading.Event()
    reader.expect(lambda rows: holding.wait(30), np.arange(3).copy)
    reader._expected = None  # the thread is busy with that
    reader.expect(files.read, np.arange(5).copy)
    reader.get(files.read, slice(0, 1))
    holding.set()
    assert [rows for rows, _ in files.reads] == [[0]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_reads_by_itself(always_ahead):
    files = Files()
    reader = ReadAhead()
    reader.expect(files.read, np.arange(3).copy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads are not copied
        child = os.fork()
    if child == 0:
        reader.expect(files.read, np.arange(3).copy)
        is_right = np.array_equal(reader.get(files.read, np.arange(3)), [0, 2, 4])
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_fast_files_need_no_thread(monkeypatch):
    monkeypatch.setattr(read_ahead, "SLOW_READ", 60.0)  # however busy the machine is
    files = Files()
    reader = ReadAhead()
    reader.get(files.read, slice(0, 4))
    reader.expect(files.read, np.arange(4, 8).copy)
    reader.get(files.read, np.arange(4, 8))
    assert not any(is_reader(name) for _, name in files.reads)


def test_slow_files_are_read_while_others_compute():
    files = Files(0.01)
    reader = ReadAhead()
    for k in range(6):
        reader.get(files.read, np.arange(k, k + 2))
        reader.expect(files.read, np.arange(k + 1, k + 3).copy)
    reader.get(files.read, np.arange(6, 8))
    assert [is_reader(name) for _, name in files.reads] == [False] + 6 * [True]


def test_an_error_in_the_thread_reaches_the_caller(always_ahead):
    def fail(rows):
        raise ValueError("the file has changed")

    reader = ReadAhead()
    reader.expect(fail, np.arange(3).copy)
    with pytest.raises(ValueError, match="has changed"):
        reader.get(fail, np.arange(3))


def test_the_thread_has_the_numpy_error_settings_of_the_caller(always_ahead):
    reader = ReadAhead()

    def divide(rows):
        return np.ones(1) / np.zeros(1)

    with np.errstate(divide="ignore"):
        reader.expect(divide, np.arange(3).copy)
        assert np.isinf(reader.get(divide, np.arange(3)))
