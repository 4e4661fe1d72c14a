"""Worker processes under signals: what stops them, what they ignore, what they never outlive."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from npformer.engine import processes
from npformer.engine.processes import Copies, CopyDiedError
from tests.engine.helpers import linux_only

pytestmark = linux_only

LARGE = np.zeros(1 << 20)
"""More than a pipe holds."""


@pytest.fixture
def patience(monkeypatch):
    """Give copies a third of a second to do something."""
    monkeypatch.setenv(processes.TIMEOUT_VARIABLE, "0.3")


def pids_of(copies):
    return [process.pid for process in copies._processes]


def until(true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def stopped(copies):
    os.kill(pids_of(copies)[1], signal.SIGSTOP)
    copies.ask(1, 0)
    copies.answer(1)


def stopped_before_a_large_request(copies):
    os.kill(pids_of(copies)[1], signal.SIGSTOP)
    copies.ask(1, LARGE)


def stopped_in_a_large_answer(copies):
    copies.ask(1, -1)
    assert copies._pipes[1].poll(10.0)
    os.kill(pids_of(copies)[1], signal.SIGSTOP)
    copies.answer(1)


def asleep(copies):
    copies.ask(1, 60)
    copies.answer(1)


@pytest.mark.parametrize(
    "hang", [stopped, stopped_before_a_large_request, stopped_in_a_large_answer, asleep]
)
def test_a_worker_that_hangs_is_named_and_ended(patience, hang):
    def answer(k, request):
        return LARGE if np.any(request == -1) else time.sleep(np.max(request))

    with Copies(2, answer) as copies:
        pid = pids_of(copies)[1]
        began = time.monotonic()
        with pytest.raises(CopyDiedError, match=rf"process 2 of 2 \(pid {pid}\) .* 0.3 sec.*more"):
            hang(copies)
        assert time.monotonic() - began < 10.0
        copies._processes[1].join(10.0)
        assert copies._processes[1].exitcode == -signal.SIGKILL
        copies.ask(0, 0)
        assert copies.answer(0) is None


def test_a_worker_that_computes_for_long_does_not_hang(patience):
    def compute(k, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1000))
        return "done"

    with Copies(1, compute) as copies:
        copies.ask(0, 1.5)
        assert copies.answer(0) == "done"


def test_where_nobody_says_whether_a_worker_computes_it_is_waited_for(patience, monkeypatch):
    def unknown(clock):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(time, "clock_gettime_ns", unknown)
    with Copies(1, lambda k, seconds: time.sleep(seconds)) as copies:
        copies.ask(0, 1.0)
        assert copies.answer(0) is None


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_timeout_that_is_no_time_is_refused(monkeypatch, text):
    monkeypatch.setenv(processes.TIMEOUT_VARIABLE, text)
    with pytest.raises(ValueError, match=f"NPFORMER_WORKER_TIMEOUT is '{text}'; expected seconds"):
        Copies(1, lambda k, _: None)


@pytest.mark.parametrize(("text", "seconds"), [("", 60.0), ("2.5", 2.5), ("inf", np.inf)])
def test_the_timeout_is_what_the_environment_says(monkeypatch, text, seconds):
    monkeypatch.setenv(processes.TIMEOUT_VARIABLE, text)
    with Copies(1, lambda k, _: 7) as copies:
        copies.ask(0, None)
        assert (copies.answer(0), copies._timeout) == (7, seconds)


BEGIN = """
import fcntl, os, signal, sys, time
from npformer.engine.processes import Copies

def say(*words):
    print(*words, flush=True)

def compute(k, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
    return os.getpid()

def ask(copies, seconds=0.0):
    for k in range(2):
        copies.ask(k, seconds)
    return [copies.answer(k) for k in range(2)]
"""


@pytest.fixture
def start():
    """Start a program in a group of its own, and end the group with the test."""
    started = []

    def run(code):
        command = [sys.executable, "-W", "ignore", "-c", BEGIN + code]
        pipe = subprocess.PIPE  # without a buffer, out of which `communicate` would not read
        started.append(
            subprocess.Popen(command, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True)
        )
        return started[-1]

    yield run
    for program in started:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate(timeout=30)


def line(program):
    return program.stdout.readline().decode()


def rest(program):
    """Return what else a program prints, its errors, and its exit code."""
    out, err = program.communicate(timeout=30)
    return out.decode(), err.decode(), program.returncode


HANDLED = """
handled = []

def handle(number, frame):
    handled.append(number)
    say("handled by", os.getpid())

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, handle)
copies = Copies(2, compute)
say(*ask(copies))
for k in range(2):
    copies.ask(k, 0.5)
while len(handled) < 4:
    time.sleep(0.01)
say(copies.answer(0), copies.answer(1))
"""


def test_signals_to_the_group_are_handled_by_the_original_alone(start):
    program = start(HANDLED)
    pids = line(program)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        os.killpg(program.pid, number)
        assert line(program) == f"handled by {program.pid}\n"
    assert rest(program) == (pids, "", 0)


def test_workers_that_are_told_to_end_by_others_go_on(start):
    """A service manager tells all processes of a service, and the original is to stop in order."""
    program = start("copies = Copies(2, compute)\nsay(*ask(copies))\nsay(*ask(copies, 1.0))")
    pids = line(program)
    for pid in pids.split():
        os.kill(int(pid), signal.SIGTERM)
    assert rest(program) == (pids, "", 0)


def test_workers_wait_for_their_own_children_whatever_the_original_does_with_its(start):
    code = """
def child(k, _):
    import subprocess
    return subprocess.run([sys.executable, "-c", "raise SystemExit(3)"]).returncode
signal.signal(signal.SIGCHLD, lambda *_: None)
say(*ask(Copies(2, child)))
"""
    assert rest(start(code)) == ("3 3\n", "", 0)


@pytest.mark.slow
def test_ctrl_z_stops_the_whole_group_for_any_time_and_it_goes_on(start, patience):
    program = start("copies = Copies(2, compute)\nsay(*ask(copies))\nsay(*ask(copies, 1.5))")
    pids = line(program)
    os.killpg(program.pid, signal.SIGSTOP)
    time.sleep(1.0)
    os.killpg(program.pid, signal.SIGCONT)
    assert rest(program) == (pids, "", 0)


@pytest.mark.covering(1)
@pytest.mark.parametrize("first", ["weakref.finalize(say, print, end='')", ""])
@pytest.mark.parametrize("last", ["", "copies.ask(0, 60.0)", "os.kill(pids[0], signal.SIGSTOP)"])
def test_the_original_never_waits_for_workers_at_its_end(start, first, last):
    """They ignore SIGTERM, with which multiprocessing would end them, if it were asked first."""
    code = f"import weakref\n{first}\ncopies = Copies(2, compute)\npids = ask(copies)\nsay(*pids)\n"
    program = start(code + last)
    out, *others = rest(program)
    assert others == ["", 0]
    assert not any(alive(int(pid)) for pid in out.split())


LOCKED = """
lock = open({path!r})
fcntl.flock(lock, fcntl.LOCK_EX)
copies = Copies(2, compute)
pids = ask(copies)
say(*pids)
copies.ask(0, 60.0)
os.kill(pids[1], signal.SIGSTOP)
say("now")
time.sleep(60)
"""


def test_workers_do_not_outlive_an_original_that_was_killed_nor_hold_its_locks(start, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "lock"
    path.touch()
    program = start(LOCKED.format(path=str(path)))
    pids = [int(word) for word in line(program).split()]
    assert line(program) == "now\n"

    def free():
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    assert not free()
    program.kill()
    program.wait(10.0)
    assert until(free, seconds=1.0)
    assert until(lambda: not any(alive(pid) for pid in pids))
