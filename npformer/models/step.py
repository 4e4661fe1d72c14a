"""A training step without the optimizer: the loss of a batch, and its gradients."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from npformer.core import (
    Array,
    Context,
    Gradients,
    guard_computation,
    part_generator,
    step_key,
)
from npformer.models.batch import Batch
from npformer.models.losses import Loss


def accumulate(
    model: Any,
    loss: Loss,
    batch: Batch,
    context: Context,
    gradients: Gradients,
    weight: float = 1.0,
) -> Any:
    """Add the gradients of ``weight * loss`` to `gradients` and return ``weight * loss``.

    This is `PlainStep` for a part of a batch: model and loss forward, then both backward. If the
    batch is part of a larger one, `weight` is its fraction of the mean. The result is an array
    with no axes, on the model's backend.
    """
    outputs, model_cache = model.forward(*batch.arrays(), batch.within(context))
    mean_loss, loss_cache = loss.forward(outputs, *batch.targets())
    doutputs = loss.backward(weight, loss_cache)
    model.backward(doutputs, model_cache, gradients)
    return mean_loss * weight


class Step(Protocol):
    """One way to compute a training step: plain, by a team of workers, by ranks.

    Attributes
    ----------
    shared_by : str
        Who computed the last step, such as "1 worker".
    """

    @property
    def shared_by(self) -> str: ...

    def __call__(self, batch: Batch) -> tuple[Array, Gradients]:
        """Return the loss of a batch, an array without axes, and its gradients.

        The batch is checked and on the model's backend. The next step may overwrite the gradients.
        """


@dataclass
class PlainStep:
    """Forward, loss and backward in this process, without sharing the batch.

    The masks of dropout depend on the `generator` alone, which draws one number in each step.
    """

    model: Any
    loss: Loss
    generator: Any = None
    shared_by: str = "1 worker"

    def __call__(self, batch: Batch) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients."""
        model = self.model
        key = step_key(self.generator)
        context = Context(training=True, generator=partial(part_generator, key, 0, len(batch)))
        gradients = Gradients(model.parameters())
        with guard_computation(model.backend, len(batch)):
            outputs, model_cache = model.forward(*batch.arrays(), batch.within(context))
            loss, loss_cache = self.loss.forward(outputs, *batch.targets())
            doutputs = self.loss.backward(1.0, loss_cache)
            model.backward(doutputs, model_cache, gradients)
        return loss, gradients
