"""The two passes of a training step."""

from typing import Any, Protocol

from npformer.core import Context, Gradients
from npformer.core.inputs import Sequences, arrays_of, within
from npformer.models.losses import Loss


class Samples(Protocol):
    """What a step asks of a batch."""

    @property
    def inputs(self) -> tuple[Sequences, ...]:
        """One for each input of the model, in the order of `forward`."""

    def targets(self) -> tuple[Any, ...]:
        """Return what the loss takes after the outputs."""
        ...


def accumulate(
    model: Any,
    loss: Loss,
    batch: Samples,
    context: Context,
    gradients: Gradients,
    weight: float = 1.0,
) -> Any:
    """Add the gradients of ``weight * loss`` to `gradients` and return ``weight * loss``.

    This is a training step without the optimizer: model and loss forward, then both backward. If
    the batch is part of a larger one, `weight` is its share of the mean. The result is an array
    with no axes, on the model's backend.
    """
    outputs, cache = model.forward(*arrays_of(batch.inputs), within(batch.inputs, context))
    value, loss_cache = loss.forward(outputs, *batch.targets())
    model.backward(loss.backward(weight, loss_cache), cache, gradients)
    return value * weight
