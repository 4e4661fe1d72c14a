"""The progress bar of a training, on stderr."""

import math
from typing import Any

from npformer.core import checks
from npformer.core.bar import bar
from npformer.training.callbacks import Callback, TrainingState


class ProgressBar(Callback):
    """Shows all steps of the training, and the losses of the last epoch."""

    def __init__(self, shown: bool) -> None:
        checks.flag("progress", shown)
        self.shown = shown
        self._bar: Any

    def on_start(self, state: TrainingState) -> None:
        """Draw the bar."""
        total = state.epochs * state.n_steps
        done = max(state.epoch - 1, 0) * state.n_steps + state.step_in_epoch
        self._bar = bar(self.shown, total=total, initial=done, unit="step", leave=True)

    def after_step(self, state: TrainingState) -> None:
        """Move the bar."""
        self._bar.update(1)

    def after_epoch(self, state: TrainingState) -> None:
        """Show the epoch's training loss, and its validation accuracy or else loss."""
        figures = {"loss": f"{state.history.train_loss[-1]:.4f}"}
        if (found := state.evaluation) is not None:
            shown = found.loss if math.isnan(found.accuracy) else found.accuracy
            figures["validation"] = f"{shown:.4f}"
        self._bar.set_postfix(figures)

    def on_end(self, state: TrainingState) -> None:
        """Leave the bar where it is."""
        self._bar.close()
