"""Remote: the callback that lets a page watch and steer a run, between two steps."""

from __future__ import annotations

import copy
import sys
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from npformer.core import Layer, to_numpy
from npformer.engine.blas import OneBlasThread
from npformer.layers import ReLU
from npformer.learn.play import questions
from npformer.learn.play.broken import angles, angles_between_batches
from npformer.learn.play.state import Now, groups_of
from npformer.learn.play.task_works import Work
from npformer.learn.play.training_figures import TrainingFigures
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.inspection.trace import trace

EVERY = 0.2
"""Seconds between two reports."""

EVERY_DEAD = 2.0
"""Seconds between two counts of dead units, each of which is a forward pass."""

A_FEW = slice(0, 32)

A_FEW_OTHERS = slice(32, 64)

STOPPED = "stopped on the page"

MISTAKES = (ValueError, TypeError, OSError, MemoryError, RecursionError, ArithmeticError)
"""Errors whose message is the answer."""


class Remote(Callback):
    """Sends what happens in a training through a pipe, and answers what comes through it.

    While the run is paused, it waits in the callback: the training does not notice, so it equals
    one without a pause, bit for bit.
    """

    def __init__(self, pipe: Connection, work: Work, paused: bool) -> None:
        self.pipe, self.work = pipe, work
        self.paused, self.steps_left = paused, 0
        self.over = False  # whether the process should end
        self.now: Any = None  # a `Now`, once the training has begun
        self._points: list[dict[str, Any]] = []
        self._groups: list[tuple[str, list[str]]] = []
        self._training_figures = TrainingFigures(work)
        self._healthy: Any = None  # the model without the run's bug
        self._last = self._last_dead = -np.inf

    # Hooks of the training ------------------------------------------------------------------------

    def on_start(self, state: TrainingState) -> None:
        """Say what is trained, and wait if the run begins with a pause."""
        earlier = self.now
        self.now = Now(self.work, state)
        if earlier is not None:  # the training goes on
            self.now.kept, self.now.every = earlier.kept, earlier.every
        self.now.keep()
        self._groups = groups_of(state.model)
        self.tell_state()
        self._serve(state)

    def after_step(self, state: TrainingState) -> None:
        """Record the step; now and then send the records; answer; wait while paused."""
        now = time.perf_counter()
        is_whole = now - self._last >= EVERY or self.paused
        self._points.append(self._point(state, is_whole))
        if is_whole:
            self._last = now
            self._send_points()
        self.now.keep()
        self.steps_left = max(self.steps_left - 1, 0)
        self._serve(state)

    def after_epoch(self, state: TrainingState) -> None:
        """Send the figures of the validation, and those of the training beside them."""
        if (evaluation := state.evaluation) is not None:
            accuracy = None if np.isnan(evaluation.accuracy) else evaluation.accuracy
            point: dict[str, Any] = {"step": state.step, "epoch": state.epoch}
            point |= {"loss": None, "lr": None}
            point |= {"accuracy": accuracy, "validation_loss": evaluation.loss}
            self._points.append(point | self._training_figures.measure(state))
            self._send_points()

    def on_end(self, state: TrainingState) -> None:
        """Send what is left."""
        self._send_points()

    # What is sent ---------------------------------------------------------------------------------

    def _point(self, state: TrainingState, whole: bool) -> dict[str, Any]:
        """Return what is recorded of a step; `whole`: with what takes time to compute."""
        optimizer = state.optimizer
        point: dict[str, Any] = {
            "step": state.step,
            "epoch": state.epoch,
            "loss": state.loss,
            "lr": float(optimizer.lr * optimizer.schedule(optimizer.steps)),
            "accuracy": None,
        }
        if not whole or state.gradients is None:
            return point
        squares = {name: float(np.vdot(g, g)) for name, g in state.gradients.items()}
        point["norms"] = [sum(squares[name] for name in names) ** 0.5 for _, names in self._groups]
        if time.perf_counter() - self._last_dead >= EVERY_DEAD:
            self._last_dead = time.perf_counter()
            point["dead"] = self._dead(state.model)
            if self.work.settings.bug is not None:
                point |= self._angles(state.model)
        return point

    def _dead(self, model: Layer) -> list[float] | None:
        """Return the share of units of each ReLU that are 0 for all tokens of some samples."""
        if not any(isinstance(layer, ReLU) for _, layer in model.layers()):
            return None
        inputs, _, masks = self.work.sample(A_FEW)
        calls = [c for c in trace(model, inputs, masks) if isinstance(c.layer, ReLU)]
        outputs = [to_numpy(call.output).reshape(-1, call.output.shape[-1]) for call in calls]
        return [float((output <= 0.0).all(axis=0).mean()) for output in outputs]

    def _angles(self, model: Any) -> dict[str, list[float | None]]:
        """Return by how many degrees the bug turns the gradient of each layer: "angles".

        "apart" are those between the right gradients of two batches, to compare them with.
        """
        if self._healthy is None:
            self._healthy = self.work.healthy()
        x, y, _ = self.work.sample(A_FEW)
        wrong = copy.deepcopy(model)
        groups = [names for _, names in self._groups]
        turned = {"angles": angles(wrong, self._healthy, x, y, groups)}
        if len(self.work) < A_FEW_OTHERS.stop:
            return turned
        other_x, other_y, _ = self.work.sample(A_FEW_OTHERS)
        apart = angles_between_batches(self._healthy, (x, y), (other_x, other_y), groups)
        return turned | {"apart": apart}

    def _send_points(self) -> None:
        if self._points:
            self.pipe.send({"event": "points", "points": self._points})
            self._points = []

    def tell_state(self, name: str | None = None) -> None:
        """Send what is known about the run; at its end, what it warned of stays."""
        state = self.now.training
        message: dict[str, Any] = {"event": "state"} | ({} if name else {"error": None})
        message["state"] = name or ("paused" if self.paused else "running")
        message |= {
            counter: getattr(state, counter) for counter in ("step", "epoch", "n_steps", "epochs")
        }
        message |= {"n_parameters": state.model.n_parameters(), "classes": self.work.names.classes}
        message["layers"] = [group for group, _ in self._groups]
        message |= {"held_out": len(self.work), "alone": self.work.alone}
        self.pipe.send(message)

    # What is answered -----------------------------------------------------------------------------

    def _serve(self, state: TrainingState) -> None:
        """Answer all messages that have arrived; while paused, wait for more."""
        while self.pipe.poll(None if self.paused and not self.steps_left else 0):
            try:
                message = self.pipe.recv()
            except EOFError:  # the server has gone
                self.over, message = True, {"action": "stop"}
            if "action" not in message:
                self.answer(message)
            elif self.act(message["action"]):
                state.stop(STOPPED)
                return

    def act(self, action: str) -> bool:
        """Do what the page wants, and return whether the training ends."""
        before = self.paused
        if action == "end":
            self.over = True
        if action in ("stop", "end"):
            return True
        self.steps_left = self.steps_left + 1 if action == "step" else 0
        self.paused = action != "go"
        if before != self.paused or action == "step":
            self.tell_state()
        return False

    def answer(self, message: dict[str, Any]) -> None:
        """Answer a question; what is wrong with it is an answer, too."""
        reply: dict[str, Any] = {"id": message["id"]}
        try:
            with OneBlasThread():  # arrays are small, and other runs have the other cores
                reply["answer"] = questions.ask(self.now, **message["asked"])
        except MISTAKES as error:
            reply["error"] = str(error)
        except Exception as error:  # a mistake of ours must not end the training
            traceback.print_exc(file=sys.stderr)
            reply["error"] = f"{type(error).__name__}: {error}"
        self.pipe.send(reply)
