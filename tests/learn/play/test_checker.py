"""Questions about bugs, answered in a process beside the runs."""

import os
import threading

import pytest

from npformer.learn.play import checker
from npformer.learn.play.checker import Checker
from npformer.learn.play.questions.gradcheck import gradcheck

BUG = "LayerNormWithoutGamma"


@pytest.fixture
def started(monkeypatch):
    """Return the names of the processes that a checker starts, while they are counted."""
    names = []
    real = checker.multiprocessing.get_context("spawn").Process

    class Counted:
        @staticmethod
        def Process(**options):
            names.append(options["name"])
            return real(**options)

    monkeypatch.setattr(checker.multiprocessing, "get_context", lambda _: Counted)
    return names


@pytest.mark.processes
def test_the_answer_is_that_of_the_package():
    assert Checker().ask(BUG) == gradcheck(BUG)


@pytest.mark.processes
def test_an_answer_is_computed_once(started):
    one = Checker()
    askers = [threading.Thread(target=one.ask, args=(BUG,)) for _ in range(3)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert started == ["gradcheck"]


@pytest.mark.processes
def test_the_process_ends_with_its_answer():
    Checker().ask(BUG)
    children = checker.multiprocessing.active_children()
    assert [child for child in children if child.name == "gradcheck"] == []


def test_a_check_steps_back_behind_the_runs(monkeypatch):
    steps_back = []
    monkeypatch.setattr(os, "nice", steps_back.append)
    monkeypatch.setattr(checker.signal, "signal", lambda *_: None)
    ours, theirs = checker.multiprocessing.Pipe(duplex=False)
    checker.check(theirs, BUG)
    assert ours.recv()["tensors"]
    assert steps_back == [checker.NICENESS]


@pytest.mark.processes
def test_a_check_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(checker, "PATIENCE", 0.0)
    with pytest.raises(TimeoutError, match="gradcheck has not answered in 0 seconds"):
        Checker().ask(BUG)


def test_after_the_end_no_check_begins(started):
    over = Checker()
    over.end()
    with pytest.raises(ValueError, match="the server ends"):
        over.ask(BUG)
    assert started == []


@pytest.mark.parametrize("name", ["no bug", None, ["a"]])
def test_an_unknown_bug_is_named(name):
    with pytest.raises(ValueError, match=r"bug is .*; expected one of"):
        Checker().ask(name)
