"""Signals that wait for the end of a body."""

import signal
import threading
from collections import deque

import pytest

from npformer.core.support.waiting_signals import signals_wait


def test_an_interrupt_waits_for_the_end_of_the_body():
    events = []

    def interrupted():
        with signals_wait():
            signal.raise_signal(signal.SIGINT)
            events.append("done")
        events.append("never")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert events == ["done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_user_s_waits_and_runs_once():
    calls = []
    before = signal.signal(signal.SIGTERM, lambda signum, frame: calls.append(signum))
    try:
        with signals_wait():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            assert calls == []
        assert calls == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_handlers_return_after_an_error():
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), signals_wait():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is handler


def test_in_another_thread_nothing_changes():
    handlers = []

    def note():
        with signals_wait():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=note)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_every_signal_reaches_its_handler_though_ctrl_c_raises():
    received = []
    handler_before = signal.signal(signal.SIGTERM, lambda signum, frame: received.append(signum))
    try:
        with pytest.raises(KeyboardInterrupt), signals_wait():
            deque(map(signal.raise_signal, [signal.SIGINT, signal.SIGTERM]), maxlen=0)
    finally:
        signal.signal(signal.SIGTERM, handler_before)
    assert received == [signal.SIGTERM]


def test_all_handlers_come_back_though_ctrl_c_interrupts_their_return(monkeypatch):
    def handler(signum, frame):
        pass

    set_handler = signal.signal
    interrupts = [signal.SIGINT]

    def interrupted(signum, new_handler):
        old_handler = set_handler(signum, new_handler)
        if new_handler is signal.default_int_handler and interrupts:
            signal.raise_signal(interrupts.pop())
        return old_handler

    handler_before = set_handler(signal.SIGTERM, handler)
    monkeypatch.setattr(signal, "signal", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt), signals_wait():
            pass
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        set_handler(signal.SIGTERM, handler_before)
