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

MOST_SAMPLES = 500

REST = 10.0
"""Times the duration of a measurement that has to pass before the next: it costs 10 % at most."""


class TrainingFigures:
    """Measures a model after its epochs: with the weights of that moment and without dropout.

    The loss of a batch is another one: it has dropout, and the weights of its step. Beside such a
    loss one on validation data may look better than it is.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._samples: Any = None  # drawn when the model's vocabulary is known
        self._next = -math.inf  # when the rest after the latest measurement ends

    def measure(self, state: TrainingState) -> dict[str, float | None]:
        """Return "train_loss" and "train_accuracy"; nothing while the latest are recent enough.

        The last epoch is always measured. An accuracy is None for a loss without classes.
        """
        if time.perf_counter() < self._next and state.epoch < state.epochs:
            return {}
        if self._samples is None:
            self._samples = self._work.training_samples(MOST_SAMPLES)
        began = time.perf_counter()
        try:
            with OneBlasThread(), np.errstate(over="ignore", invalid="ignore"):
                evaluation = evaluate(state.model, self._samples)
        except ValueError:  # outputs are not finite, which the training itself reports
            return {}
        ended = time.perf_counter()
        self._next = ended + REST * (ended - began)
        accuracy = None if math.isnan(evaluation.accuracy) else evaluation.accuracy
        return {"train_loss": evaluation.loss, "train_accuracy": accuracy}
