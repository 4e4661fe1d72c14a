"""Loss and accuracy on samples that a model trains on, measured as those of the validation are."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from npformer.engine.blas import OneBlasThread
from npformer.learn.play.task_works import Work
from npformer.training.callbacks import TrainingState
from npformer.training.evaluation import evaluate

MOST_SAMPLES = 250

FREE = 0.5
"""Seconds that all measurements of a run may take: a short one is measured after each epoch."""

SHARE = 0.05
"""Share of a run's time that they may take beyond that."""


class TrainingFigures:
    """Measures a model after its epochs: with the weights of that moment and without dropout.

    The loss of a batch is another one: it has dropout, and the weights of its step. Beside such a
    loss one on validation data may look better than it is.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._samples: Any = None  # drawn when the model's vocabulary is known
        self._began = time.perf_counter()
        self._spent = 0.0  # seconds

    def measure(self, state: TrainingState) -> dict[str, float | None]:
        """Return "train_loss" and "train_accuracy"; nothing if that would take too much time.

        The last epoch is always measured. An accuracy is None for a loss without classes.
        """
        allowed = FREE + SHARE * (time.perf_counter() - self._began)
        if self._spent > allowed and state.epoch < state.epochs:
            return {}
        if self._samples is None:
            self._samples = self._work.training_samples(MOST_SAMPLES)
        began = time.perf_counter()
        try:
            with OneBlasThread(), np.errstate(over="ignore", invalid="ignore"):
                evaluation = evaluate(state.model, self._samples)
        except ValueError:  # outputs are not finite, which the training itself reports
            return {}
        self._spent += time.perf_counter() - began
        accuracy = None if math.isnan(evaluation.accuracy) else evaluation.accuracy
        return {"train_loss": evaluation.loss, "train_accuracy": accuracy}
