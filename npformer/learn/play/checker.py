"""Questions about a bug, answered in a process beside the runs: none of them waits or ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from npformer.core import checks
from npformer.engine.blas import OneBlasThread
from npformer.learn.play.broken import HAVE_A_PLACE
from npformer.learn.play.output import output_that_never_waits
from npformer.learn.play.questions.gradcheck import gradcheck
from npformer.learn.play.runner import unheard

PATIENCE = 60.0
"""Seconds that a check may take, with the start of its process."""

NICENESS = 10
"""How far a check steps back behind the runs: of a busy core it gets about a tenth."""


class Checker:
    """Answers what gradcheck says about a bug; one question at a time, the others wait.

    Each question gets a process with one thread and a low priority, which ends with its answer. An
    answer is the same every time, so it is computed once.
    """

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Any]] = {}
        self._one_at_a_time = threading.Lock()
        self._process: Any = None
        self._over = False

    def ask(self, bug: Any) -> dict[str, Any]:
        """Return what gradcheck says about a bug. Raises ValueError for an unknown one.

        TimeoutError says that there was no answer in time.
        """
        checks.choice("bug", bug, HAVE_A_PLACE)
        with self._one_at_a_time:
            if bug not in self._answers:
                self._answers[bug] = self._compute(bug)
            return self._answers[bug]

    def end(self) -> None:
        """End the check that is under way, if there is one; no other begins."""
        self._over = True
        if self._process is not None:
            self._process.kill()

    def _compute(self, bug: str) -> dict[str, Any]:
        """Return the answer of a new process."""
        if self._over:
            raise ValueError("the server ends; expected a question before that. Start it again")
        ours, theirs = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=check, args=(theirs, bug), daemon=True, name="gradcheck")
        with unheard():
            process.start()
        self._process = process
        theirs.close()
        try:
            if not ours.poll(PATIENCE):
                raise TimeoutError(f"gradcheck has not answered in {PATIENCE:g} seconds")
            answer: dict[str, Any] = ours.recv()
        except EOFError as error:
            raise ValueError("the check ended without an answer; ask again") from error
        finally:
            self._process = None
            process.kill()
            process.join()
            ours.close()
        return answer


def check(pipe: Connection, bug: str) -> None:
    """Send the answer on a bug through a pipe, as the process of a question."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server says when to end
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with output_that_never_waits(), OneBlasThread(), suppress(BrokenPipeError):
        pipe.send(gradcheck(bug))
