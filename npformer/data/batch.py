"""A batch of samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from npformer.core import Array, Context, Padding
from npformer.losses import Loss


@dataclass(frozen=True)
class Batch:
    """Samples that have been checked and are on the model's backend."""

    x: Array  # as the model takes it
    y: Array | None = None  # targets, as the loss takes them
    padding: Padding | None = None
    types: Array | None = None  # of the tokens: whole numbers, (batch, length)
    weights: Array | None = None  # of the targets in the mean: (batch,) or (batch, length)
    counts: Array | None = None  # how much each sample counts in it: NumPy array, (batch,)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def padded_length(self) -> int:
        """The number of tokens of each sample, padding included."""
        return int(self.x.shape[1])

    def of_rows(self, rows: Any) -> Batch:
        """Return some samples: a slice, or an array of row numbers."""
        y, types, weights, counts = (
            None if array is None else array[rows]
            for array in (self.y, self.types, self.weights, self.counts)
        )
        padding = None if self.padding is None else self.padding.of_rows(rows)
        return Batch(self.x[rows], y, padding, types, weights, counts)

    def subset(self, rows: Any) -> Batch:
        """Return some samples, as `of_rows`: samples that stay in files tell the two apart."""
        return self.of_rows(rows)

    def counts_for(self, loss: Loss) -> Any:
        """Return how much each sample counts in the mean loss: a NumPy array, (batch,)."""
        return loss.counts(self.y) if self.weights is None else loss.counts(self.y, self.weights)

    def within(self, context: Context) -> Context:
        """Return `context` with the padding and types of this batch."""
        if self.padding is None and self.types is None:
            return context
        return replace(context, padding=self.padding, types=self.types)
