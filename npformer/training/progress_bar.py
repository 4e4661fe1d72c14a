"""The progress bar of a training, on stderr."""

import math
import sys
import warnings
from contextlib import redirect_stderr
from typing import Any

from npformer.core import checks
from npformer.core.streams import Forgiving
from npformer.training.callbacks import Callback, TrainingState


class ProgressBar(Callback):
    """Shows all steps of the training, and the losses of the last epoch."""

    def __init__(self, shown: bool) -> None:
        checks.flag("progress", shown)
        self.shown = shown
        self._bar: Any

    def on_start(self, state: TrainingState) -> None:
        """Draw the bar."""
        from tqdm import TqdmMonitorWarning, tqdm

        total = state.epochs * state.n_steps
        done = max(state.epoch - 1, 0) * state.n_steps + state.step_in_epoch
        shown = self.shown and sys.stderr is not None  # closed (`2>&-`), or a program of windows
        with redirect_stderr(Forgiving(sys.stderr)), warnings.catch_warnings():
            warnings.simplefilter("ignore", TqdmMonitorWarning)  # where there are no threads
            self._bar = tqdm(total=total, initial=done, disable=not shown, unit="step", leave=True)

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
