"""The limit of BLAS: whatever interrupts it, BLAS has the threads afterwards that it had before."""

import gc
import linecache
import os
import signal
import sys
import threading
import warnings

import pytest

from npformer.engine.blas import BLAS_LIMIT, BlasLimit, OneBlasThread
from tests.engine.helpers import blas_threads


class Library:
    """Stands for a BLAS with 4 threads, and does something at one of its calls."""

    def __init__(self, at_call=0, do=None):
        self.n, self.calls = 4, 0
        self.at_call, self.do = at_call, do

    def _call(self):
        self.calls += 1
        if self.calls == self.at_call:
            self.do()

    @property
    def num_threads(self):
        self._call()
        return self.n

    def set_num_threads(self, n):
        self._call()
        self.n = n
        self._call()

    def clear_controlling_thread(self, force):
        self._call()


def limit_of(*libraries):
    limit = BlasLimit()
    limit._libraries = list(libraries)
    return limit


def hold_twice(limit, library):
    """Use a limit in two bodies, of which the first may be interrupted; return what they had."""
    inside = []
    for holder in (1, 2):
        try:
            limit.add(holder)
            try:
                inside.append(library.n)
            finally:
                limit.remove(holder)
        except KeyboardInterrupt:
            inside.append("interrupted")
        assert limit.holders == {}
        assert library.n == 4
    return inside


def interrupt():
    raise KeyboardInterrupt


CALLS_OF_TWO_BODIES = 14


def test_an_interrupt_at_any_call_of_blas_leaves_nothing_behind():
    library = Library()
    assert hold_twice(limit_of(library), library) == [1, 1]
    assert library.calls == CALLS_OF_TWO_BODIES
    for call in range(1, CALLS_OF_TWO_BODIES + 1):
        library = Library(call, interrupt)
        inside = hold_twice(limit_of(library), library)
        assert "interrupted" in inside
        assert set(inside) <= {1, "interrupted"}


def test_a_whole_body_at_any_call_of_blas_changes_nothing():
    """As a signal's handler, or a callback of the garbage collector, that predicts."""
    inside = []

    def body():
        limit.add("handler")
        inside.append(library.n)
        limit.remove("handler")

    library = Library(do=body)
    limit = limit_of(library)
    for call in range(1, CALLS_OF_TWO_BODIES + 1):
        library.at_call = library.calls + call
        assert hold_twice(limit, library) == [1, 1]
        assert len(inside) == call
    assert set(inside) == {1}


@pytest.mark.slow
def test_an_interrupt_before_any_line_leaves_nothing_behind():
    """Python looks for signals between its instructions, such as at the start of a function."""
    interrupt_at(0)  # searches for the libraries, which is done once
    lines = interrupt_at(0)
    assert lines > 15
    for line in range(1, lines + 1):
        assert interrupt_at(line) >= line


def interrupt_at(number):
    """Interrupt before the line of that number in blas.py; return how many lines were begun."""
    before, lines = blas_threads(), 0

    def trace(frame, event, argument):
        nonlocal lines
        code = frame.f_code
        if not code.co_filename.endswith("blas.py") or code.co_name == "__del__":
            return None
        # Where a with statement begins or ends, Python looks for signals after the call.
        if linecache.getline(code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            return trace
        lines += 1
        if lines == number:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with OneBlasThread():
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    gc.collect()
    assert BLAS_LIMIT.holders == {}
    assert blas_threads() == before
    with OneBlasThread():
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before
    return lines


def test_a_handler_may_predict_while_another_thread_enters_and_leaves():
    inside, stop = [], threading.Event()

    def handle(signum, frame):
        with OneBlasThread():
            inside.extend(blas_threads())

    def enter_and_leave():
        while not stop.is_set():
            with OneBlasThread():
                pass

    before, thread = blas_threads(), threading.Thread(target=enter_and_leave)
    handler = signal.signal(signal.SIGTERM, handle)
    thread.start()
    try:
        for _ in range(20):
            with OneBlasThread():
                signal.raise_signal(signal.SIGTERM)
    finally:
        stop.set()
        thread.join(30)
        signal.signal(signal.SIGTERM, handler)
    assert set(inside) <= {1}
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("is_held_here", [False, True])
def test_a_forked_child_restores_what_another_thread_held(is_held_here):
    before, inside, leave = blas_threads(), threading.Event(), threading.Event()

    def hold():
        with OneBlasThread():
            inside.set()
            leave.wait(30)

    def child_is_right():
        if not is_held_here:
            return blas_threads() == before
        return set(blas_threads()) <= {1}

    thread, here = threading.Thread(target=hold), OneBlasThread()
    thread.start()
    inside.wait(30)
    if is_held_here:
        here.__enter__()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the other thread is not copied
        child = os.fork()
    if child == 0:
        is_right = child_is_right()
        if is_held_here:
            here.__exit__(None, None, None)
            is_right = is_right and blas_threads() == before
        os._exit(0 if is_right else 1)
    if is_held_here:
        here.__exit__(None, None, None)
    leave.set()
    thread.join(30)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert blas_threads() == before
