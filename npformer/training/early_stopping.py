"""Early stopping: the best weights are kept, and a training without progress is ended."""

import math
from typing import Any

import numpy as np

from npformer.core import array_module, to_numpy
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.trainable.metrics import Metric


class EarlyStopping(Callback):
    """Keeps the weights of the best epoch on the host, and puts them back at the end.

    With `patience`, it stops the training after that many epochs without a better one.
    """

    def __init__(self, patience: int | None, metric: Metric = "accuracy") -> None:
        self.patience = patience
        self.metric = metric
        self.weights: dict[str, np.ndarray] = {}
        self._score: tuple[float, float] | None = None

    def on_start(self, state: TrainingState) -> None:
        """Stop at once if patience had already run out at the checkpoint resumed from."""
        if len(state.history.validation_loss) == state.epoch:  # no epoch is under way
            self._stop_if_too_late(state)

    def after_epoch(self, state: TrainingState) -> None:
        """Keep the model's weights if they are better than those kept."""
        if (found := state.evaluation) is None:
            return
        value = -found.loss if self.metric == "loss" else found.value(self.metric)
        score = 0.0 if math.isnan(value) else value, -found.loss  # the larger the better
        if self._score is None or score > self._score:
            self._score = score
            self.weights = {n: to_numpy(p).copy() for n, p in state.model.parameters().items()}
            state._set(best_epoch=state.epoch)
        self._stop_if_too_late(state)

    def _stop_if_too_late(self, state: TrainingState) -> None:
        if self.patience is not None and state.epoch - (state.best_epoch or 0) >= self.patience:
            state.stop("patience")

    def on_end(self, state: TrainingState) -> None:
        """Put the best weights back, and record which epoch the model's weights come from."""
        for name, parameter in state.model.parameters().items():
            if name in self.weights:
                parameter[...] = array_module(parameter).asarray(self.weights[name])
        complete = len(state.history.train_loss) == state.epoch > 0
        state.history.best_epoch = state.best_epoch or (state.epoch if complete else None)

    def state_dict(self) -> dict[str, Any]:
        """Return the best score, and the weights that had it."""
        return {"score": self._score, "weights": self.weights}

    def load_state_dict(self, state: Any) -> None:
        """Restore the best score and its weights."""
        score, self.weights = state["score"], state["weights"]
        self._score = None if score is None else (float(score[0]), float(score[1]))
