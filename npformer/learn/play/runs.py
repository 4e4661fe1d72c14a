"""Runs: the processes that train, what they have reported, and who listens."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from npformer.core import checks
from npformer.learn.play.folder import Folder, place_of, settings_of
from npformer.learn.play.runner import run as train
from npformer.learn.play.runner import unheard
from npformer.learn.play.settings import MOST_RUNS, TASKS, Settings
from npformer.learn.play.tasks import work_of

MOST_POINTS = 2000
"""Points of a run that are kept for pages opened later; when there are more, they are thinned."""

PATIENCE = 60.0
"""Seconds to wait for an answer: a step of a large model may be under way."""

ACTIONS = ("pause", "go", "step", "stop")

UNFINISHED = ("starting", "running", "paused", "stopped")
"""States of a run that trains, or that goes on when somebody says so; new runs end it."""


@dataclass
class Run:
    """A run, as the server knows it; it has no process before somebody lets it go on."""

    name: str
    settings: Settings
    points: list[dict[str, Any]] = field(default_factory=list)
    pipe: Any = None
    process: Any = None
    told: dict[str, Any] = field(default_factory=dict)
    waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what a page is told about it."""
        return {
            "run": self.name,
            "settings": self.settings.to_dict(),
            "kind_of_input": TASKS[self.settings.task]["kind_of_input"],
            "classes": None,
            "bug": self.settings.bug,
            "state": "stored",
            "error": None,
            "step": 0,
            "epoch": 0,
            "n_steps": 0,
            "epochs": self.settings.epochs,
            "n_parameters": 0,
            "layers": [],
            "alone": None,
            **self.told,
        }

    def send(self, message: dict[str, Any]) -> None:
        """Send the process a message."""
        if self.pipe is not None:
            with suppress(OSError):  # it has ended, which `Runs._listen` reports
                self.pipe.send(message)

    def add(self, points: list[dict[str, Any]]) -> None:
        """Add what was measured; when there is too much, most steps between epochs are left out."""
        self.told |= {name: points[-1][name] for name in ("step", "epoch")}
        first = place_of(points[0])  # a run that goes on from a checkpoint repeats some steps
        self.points = [p for p in self.points if place_of(p) < first] + points
        if len(self.points) > MOST_POINTS:
            figures = [p for p in self.points if p["loss"] is None or "norms" in p]
            self.points = figures[:: 1 + len(figures) // MOST_POINTS] + self.points[-200:]
            self.points = [*{place_of(p): p for p in self.points}.values()]


class Runs:
    """All runs of a page.

    Parameters
    ----------
    folder : Folder
        Its last runs are shown, and go on from their checkpoints when somebody wants that.
    """

    _loop: asyncio.AbstractEventLoop

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.runs: dict[str, Run] = {}
        self.listeners: set[Callable[[dict[str, Any]], None]] = set()
        self._ids, self._starting = itertools.count(), threading.Lock()

    def begin(self) -> None:
        """Show the runs in the folder; called within the server's loop."""
        self._loop = asyncio.get_running_loop()
        for name, settings in self.folder.shown().items():
            self.runs[name] = run = Run(name, settings)
            if points := self.folder.points(name):
                run.add(points)

    def start(self, given: Any, ends: Any) -> list[dict[str, Any]]:
        """Start new runs; the present ones end, and stay in the folder.

        `ends` names the runs whose end somebody has agreed to. Raises ValueError if it would end
        another one that is not finished.
        """
        if not isinstance(given, list) or not 1 <= len(given) <= MOST_RUNS:
            raise ValueError(f"runs are {given!r}; expected a list of 1 to {MOST_RUNS} settings")
        all_settings = [Settings.of(run_settings) for run_settings in given]
        for settings in all_settings:
            if settings.bug is not None or settings.task in ("file", "text"):
                work_of(settings)  # so that a wrong file is named before anything is ended
        with self._starting:  # two pages may ask at once
            self._check_agreed(ends)
            names = self.folder.begin(all_settings)
            self.end()
            self.runs = {
                n: Run(n, run_settings) for n, run_settings in zip(names, all_settings, strict=True)
            }
            for run in self.runs.values():
                self._start(run, paused=False)
            descriptions = [run.to_dict() for run in self.runs.values()]
        self._loop.call_soon_threadsafe(self.tell_all)
        return descriptions

    def _check_agreed(self, ends: Any) -> None:
        """Raise ValueError if an unfinished run would end whose name is not among `ends`."""
        checks.instance("ends", ends, list)
        for run in self.runs.values():
            if run.told.get("state") in UNFINISHED and run.name not in ends:
                raise ValueError(
                    f"{run.name} is {run.told['state']} and would end; expected its name in ends "
                    f"({ends!r}). Press Start again, and say yes to its end"
                )

    def control(self, name: Any, action: Any) -> None:
        """Pause, step, go on or stop, one run or all."""
        checks.choice("action", action, ACTIONS)
        with self._starting:
            for run in [*self.runs.values()] if name == "all" else [self.run(name)]:
                if run.process is None and action != "stop":
                    self._start(run, paused=action != "go")
                run.send({"action": action})
        self._loop.call_soon_threadsafe(self.tell_all)

    async def ask(self, name: Any, asked: dict[str, Any]) -> Any:
        """Return a run's answer to a question."""
        run, key = self.run(name), next(self._ids)
        if run.process is None:
            raise ValueError(f"{run.name} is stored; expected one that was told to go on")
        if run.told.get("state") == "failed" or not run.process.is_alive():
            raise ValueError(f"{run.name} has failed: {run.told.get('error')}. Start another one")
        run.waiting[key] = self._loop.create_future()
        try:
            run.send({"id": key, "asked": asked})
            return await asyncio.wait_for(run.waiting[key], PATIENCE)
        finally:
            run.waiting.pop(key, None)

    def run(self, name: Any) -> Run:
        """Return a run by its name."""
        checks.choice("run", name, self.runs)
        return self.runs[name]

    def now(self) -> dict[str, Any]:
        """Return the event with the states of the runs."""
        return {"kind": "runs", "runs": [run.to_dict() for run in self.runs.values()]}

    def so_far(self) -> list[dict[str, Any]]:
        """Return the events that a newly opened page needs."""
        return [self.now(), *(_points(run, run.points) for run in self.runs.values())]

    def tell_all(self, event: dict[str, Any] | None = None) -> None:
        """Tell all pages of an event: by default the states of the runs."""
        for listener in [*self.listeners]:
            listener(event or self.now())

    def end(self) -> None:
        """End all processes: each writes a checkpoint of where it is."""
        for run in self.runs.values():
            run.send({"action": "end"})
        for process in [run.process for run in self.runs.values() if run.process is not None]:
            process.join(20.0)
            if process.is_alive():
                process.kill()
                process.join()
        self.runs = {}

    # The other side -------------------------------------------------------------------------------

    def _start(self, run: Run, paused: bool) -> None:
        settings_of(self.folder.path / run.name)  # somebody may have put links there meanwhile
        run.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        arguments = theirs, self.folder.path / run.name, run.settings.to_dict(), paused
        run.process = context.Process(target=train, args=arguments, daemon=True, name=run.name)
        with unheard():
            run.process.start()
        theirs.close()
        run.told |= {"state": "starting"}
        threading.Thread(target=self._listen, args=(run,), daemon=True).start()

    def _listen(self, run: Run) -> None:
        """Hand over all that a run reports, in a separate thread."""
        with suppress(RuntimeError):  # the loop is closed
            with suppress(EOFError, OSError):
                while True:
                    self._loop.call_soon_threadsafe(self._take, run, run.pipe.recv())
            self._loop.call_soon_threadsafe(self._is_gone, run)

    def _take(self, run: Run, message: dict[str, Any]) -> None:
        if self.runs.get(run.name) is not run:  # another one has its name now
            return
        if (key := message.get("id")) is not None:
            if (waiting := run.waiting.get(key)) is None or waiting.done():
                return
            if "error" in message:
                waiting.set_exception(ValueError(message["error"]))
            else:
                waiting.set_result(message["answer"])
        elif message["event"] == "points":
            run.add(message["points"])
            self.folder.add_points(run.name, message["points"])
            self.tell_all(_points(run, message["points"]))
        else:
            run.told |= {name: value for name, value in message.items() if name != "event"}
            self.tell_all()

    def _is_gone(self, run: Run) -> None:
        for waiting in run.waiting.values():
            if not waiting.done():
                waiting.set_exception(ValueError(f"{run.name} has ended; expected a running one"))
        if self.runs.get(run.name) is run and run.told.get("state") != "failed":
            run.told |= {"state": "failed", "error": "its process ended"}
            self.tell_all()


def _points(run: Run, points: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "points", "run": run.name, "points": points}
