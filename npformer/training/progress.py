"""The progress of a training: the history of its epochs, and a bar on stderr."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

from npformer.core import checks
from npformer.core.bar import bar
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.loss_watch import LossWatch
from npformer.training.trainable.metrics import Metric


@dataclass
class Recorder(Callback):
    """Writes the history: after the last step of an epoch, and after its evaluation."""

    losses: LossWatch
    metric: Metric
    _began: float = field(default_factory=time.perf_counter)  # when the epoch began

    def before_epoch(self, state: TrainingState) -> None:
        """Start the clock."""
        self._began = time.perf_counter()

    def after_step(self, state: TrainingState) -> None:
        """Record an epoch after its last step, before a callback changes lr."""
        if state.step_in_epoch == state.n_steps:
            history, optimizer = state.history, state.optimizer
            history.train_loss.append(self.losses.epoch_mean(state))
            history.lr.append(float(optimizer.lr * optimizer.schedule(optimizer.steps)))
            history.seconds.append(self.state_dict())

    def after_epoch(self, state: TrainingState) -> None:
        """Record the evaluation."""
        if (found := state.evaluation) is None:
            return
        state.history.validation_loss.append(found.loss)
        if not math.isnan(found.accuracy):
            state.history.validation_accuracy.append(found.accuracy)
        if not math.isnan(value := found.value(self.metric)):
            state.history.validation_metric.append(value)

    def state_dict(self) -> Any:
        """Return how long the epoch has taken so far."""
        return time.perf_counter() - self._began

    def load_state_dict(self, state: Any) -> None:
        """Restore how long the epoch has taken, as if it had begun that long ago."""
        self._began = time.perf_counter() - float(state)


class ProgressBar(Callback):
    """Shows all steps of the training, and the losses of the last epoch."""

    def __init__(self, shown: bool, rank: int = 0) -> None:
        checks.flag("progress", shown)
        self.shown = shown and rank == 0

    def on_start(self, state: TrainingState) -> None:
        """Draw the bar."""
        total = state.epochs * state.n_steps
        done = max(state.epoch - 1, 0) * state.n_steps + state.step_in_epoch
        self._bar = bar(self.shown, total=total, initial=done, unit="step", leave=True)

    def after_step(self, state: TrainingState) -> None:
        """Move the bar."""
        self._bar.update(1)

    def after_epoch(self, state: TrainingState) -> None:
        """Show the epoch's training loss, and its validation accuracy, or loss if it has none."""
        figures = {"loss": f"{state.history.train_loss[-1]:.4f}"}
        if (found := state.evaluation) is not None:
            shown = found.loss if math.isnan(found.accuracy) else found.accuracy
            figures["validation"] = f"{shown:.4f}"
        self._bar.set_postfix(figures)

    def on_end(self, state: TrainingState) -> None:
        """Leave the bar where it is."""
        self._bar.close()
