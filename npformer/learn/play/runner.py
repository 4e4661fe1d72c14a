"""The process of a run: it trains, and answers questions, until it is told to end."""

from __future__ import annotations

import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from npformer.learn.play.output import output_that_never_waits
from npformer.learn.play.remote import MISTAKES, STOPPED, Remote
from npformer.learn.play.settings import Settings
from npformer.learn.play.tasks import work_of

OPTIONS: dict[str, Any] = {"progress": False, "workers": 1, "resume": True, "every": 5}
"""Arguments of `npformer.fit`: a run has one core, because up to four run side by side."""


@contextmanager
def unheard() -> Iterator[None]:
    """Let processes that are started within begin without hearing Ctrl-C, until they ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # whose own start would let signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(pipe: Connection, folder: Path, settings: dict[str, Any], paused: bool) -> None:
    """Train with some settings, as the process of a run."""
    with output_that_never_waits():
        _train(pipe, folder, settings, paused)


def _train(pipe: Connection, folder: Path, settings: dict[str, Any], paused: bool) -> None:
    """Train, and answer questions, until the server says when to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server says when to end

    def tell(words: Any, *_: Any, **more: Any) -> None:
        print(f"npformer play: {folder.name}: {words}", file=sys.stderr)
        pipe.send({"event": "state", "error": str(words), **more})

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = tell  # type: ignore[assignment]
    remote = None
    try:
        work = work_of(Settings.of(settings))
        remote = Remote(pipe, work, paused)
        while not remote.over:
            history = work.train(callbacks=[remote], checkpoint=folder, **OPTIONS)
            stopped = history.stopped == STOPPED
            remote.tell_state("stopped" if stopped else "finished")
            _answer(remote, may_go_on=stopped)
    except (EOFError, BrokenPipeError, ConnectionError):  # the server has gone
        return
    except Exception as error:
        if not isinstance(error, MISTAKES):
            traceback.print_exc(file=sys.stderr)
        tell(str(error) or type(error).__name__, state="failed")
        if remote is not None and remote.now is not None:
            _answer(remote, may_go_on=False)


def _answer(remote: Remote, may_go_on: bool) -> None:
    """Answer questions after a training, until it is told to go on or the process to end."""
    while not remote.over:
        message = remote.pipe.recv()
        if "action" not in message:
            remote.answer(message)
        elif message["action"] == "end":
            remote.over = True
        elif message["action"] in ("go", "step") and may_go_on:
            remote.paused = message["action"] == "step"
            remote.steps_left = int(remote.paused)
            return
