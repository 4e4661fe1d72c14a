"""Early stopping: the best weights are kept, and a training without progress is ended."""

import math

import numpy as np

from npformer.core import array_module, to_numpy
from npformer.training.callbacks import Callback, TrainingState


class EarlyStopping(Callback):
    """Keeps the weights of the best epoch on the host, and puts them back at the end.

    With `patience`, it stops the training after so many epochs without a better one.
    """

    def __init__(self, patience: int | None) -> None:
        self.patience = patience
        self._score = (-math.inf, -math.inf)
        self._weights: dict[str, np.ndarray] = {}

    def after_epoch(self, state: TrainingState) -> None:
        """Keep the model's weights if they are better than those kept."""
        found = state.evaluation
        if found is None:
            return
        score = (0.0 if math.isnan(found.accuracy) else found.accuracy, -found.loss)
        if score > self._score:
            self._score = score
            self._weights = {n: to_numpy(p).copy() for n, p in state.model.parameters().items()}
            state._set(best_epoch=state.epoch)
        if self.patience is not None and state.epoch - (state.best_epoch or 0) >= self.patience:
            state.stop("patience")

    def on_end(self, state: TrainingState) -> None:
        """Put the best weights back, and record which epoch the model's weights come from."""
        for name, parameter in state.model.parameters().items():
            if name in self._weights:
                parameter[...] = array_module(parameter).asarray(self._weights[name])
        complete = len(state.history.train_loss) == state.epoch > 0
        state.history.best_epoch = state.best_epoch or (state.epoch if complete else None)
