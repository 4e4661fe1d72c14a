"""A batch: what is known of some samples, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from npformer.core import Array, Context, Gradients, Layer, Padding
from npformer.losses import Loss


@dataclass(frozen=True)
class Batch:
    """Samples that are ready to compute with: checked, and on the model's backend.

    Attributes
    ----------
    x : array
        As the model takes it.
    y : array or None
        Targets, as the loss takes them.
    padding : Padding or None
    types : int array, shape (batch, length), or None
        Types of the tokens.
    weights : numpy array, shape (batch,), or None
        How much each sample counts in the mean loss: how many targets it has.
    """

    x: Array
    y: Array | None = None
    padding: Padding | None = None
    types: Array | None = None
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.x)

    def of_rows(self, rows: Any) -> Batch:
        """Return some samples: a slice of the batch, or those of an array of numbers."""
        return Batch(
            self.x[rows],
            None if self.y is None else self.y[rows],
            None if self.padding is None else self.padding.of_rows(rows),
            None if self.types is None else self.types[rows],
            None if self.weights is None else self.weights[rows],
        )

    def within(self, context: Context) -> Context:
        """Return a context of the same kind with this batch's padding and types."""
        if self.padding is None and self.types is None:
            return context
        return replace(context, padding=self.padding, types=self.types)


def accumulate(
    model: Layer,
    loss: Loss,
    batch: Batch,
    context: Context,
    gradients: Gradients,
    weight: float = 1.0,
) -> Any:
    """Add the gradients of ``weight * loss`` to `gradients` and return ``weight * loss``.

    This is a training step up to the optimizer: forward, loss, and both backward.

    Parameters
    ----------
    model : Layer
    loss : Loss
    batch : Batch
    context : Context
    gradients : Gradients
    weight : float
        This batch's share of the mean, if it is a part of one.

    Returns
    -------
    loss : array of no axes
        On the model's backend.
    """
    outputs, cache = model.forward(batch.x, batch.within(context))
    value, loss_cache = loss.forward(outputs, batch.y)
    model.backward(loss.backward(weight, loss_cache), cache, gradients)
    return value * weight
