"""A step: the loss of a batch, and its gradients; here on this process alone, as it is written."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from npformer.core import (
    Array,
    Context,
    Gradients,
    explained_memory_error,
    part_generator,
    step_key,
)
from npformer.data.samples import Batch
from npformer.models import accumulate
from npformer.models.losses import Loss


class Step(Protocol):
    """One way to compute a step: a `PlainStep`, the engine's `Team`, or `Ranks` of teams.

    Attributes
    ----------
    shared_by : str
        Who computed the last step, such as "2 processes".
    """

    shared_by: str

    def step(self, batch: Batch, generator: Any = None) -> tuple[Array, Gradients]:
        """Return the loss of a batch, an array without axes, and its gradients.

        The batch is checked and on the model's backend. The masks of dropout depend on the
        `generator` alone, which draws one number. The next step may overwrite the gradients.
        """


class PlainStep:
    """Forward, loss and backward, on this process: a `Step` without anything of the engine."""

    shared_by = "1 worker"

    def __init__(self, model: Any, loss: Loss) -> None:
        self._model, self._loss = model, loss

    def step(self, batch: Batch, generator: Any = None) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients."""
        model, drawn = self._model, part_generator(step_key(generator), 0, len(batch))
        context, gradients = Context(True, drawn), Gradients(model.parameters())
        # An overflow still shows in the loss, where `fit` finds it and names the tensor.
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, explained_memory_error(model.backend, len(batch)):
            loss = accumulate(model, self._loss, batch, context, gradients)
        return loss, gradients
