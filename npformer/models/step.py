"""A training step without the optimizer: the loss of a batch, and its gradients."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from npformer.core import (
    Array,
    Context,
    Gradients,
    guarded_computation,
    part_generator,
    step_key,
)
from npformer.core.inputs import arrays_of
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

    This is a training step without the optimizer: model and loss forward, then both backward. If
    the batch is part of a larger one, `weight` is its share of the mean. The result is an array
    with no axes, on the model's backend.
    """
    outputs, cache = model.forward(*arrays_of(batch.inputs), batch.within(context))
    value, loss_cache = loss.forward(outputs, *batch.targets())
    model.backward(loss.backward(weight, loss_cache), cache, gradients)
    return value * weight


class Step(Protocol):
    """One way to compute a step: plain, by a team of workers, by ranks.

    If it has a method ``clip(gradients, max_norm)``, this clips in place of `clip_by_global_norm`.

    Attributes
    ----------
    shared_by : str
        Who computed the last step, such as "1 worker".
    """

    shared_by: str

    def step(self, batch: Batch, generator: Any = None) -> tuple[Array, Gradients]:
        """Return the loss of a batch, an array without axes, and its gradients.

        The batch is checked and on the model's backend. The masks of dropout depend on the
        `generator` alone, which draws one number. The next step may overwrite the gradients.
        """


@dataclass
class PlainStep:
    """Forward, loss and backward, on this process, as it is written."""

    model: Any
    loss: Loss
    shared_by: str = "1 worker"

    def step(self, batch: Batch, generator: Any = None) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients."""
        model, drawn = self.model, partial(part_generator, step_key(generator), 0, len(batch))
        context, gradients = Context(True, drawn), Gradients(model.parameters())
        with guarded_computation(model.backend, len(batch)):
            return accumulate(model, self.loss, batch, context, gradients), gradients
