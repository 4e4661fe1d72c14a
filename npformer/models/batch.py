"""Batch: samples that have been checked, as a training step takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from npformer.core import Array, Context
from npformer.core.inputs import Sequences, arrays_of, rows_of, within
from npformer.models.losses import Loss


class Shard(NamedTuple):
    """The place of one rank's shard in the batch of all ranks."""

    first: int
    """Its first row in the whole batch."""
    total: float
    """Sum of the weights of all samples in the whole batch."""
    lengths: tuple[int, ...] | None = None
    """Tokens of a sample in each input of the whole batch, with padding; None: as many as in the
    shard. They may be more if `Snapshot.lengths_of_shard` says so."""


@dataclass(frozen=True)
class Batch:
    """Samples that have been checked: on the host, or on the model's backend."""

    inputs: tuple[Sequences, ...]  # one for each input of the model, in the order of `forward`
    y: Array | None = None  # targets, as the loss takes them
    weights: Array | None = None  # of the targets in the mean: (batch,) or (batch, length)
    counts: Array | None = None  # how much each sample counts in it: NumPy array, (batch,)
    targets_of: int | None = None  # the input whose tokens each have a target; None: samples do
    shard: Shard | None = None  # if it is a shard of a batch: its place there

    def __len__(self) -> int:
        return len(self.inputs[0].x if self.inputs else self.y)  # type: ignore[arg-type]

    @property
    def n_tokens(self) -> int:
        """The number of tokens of each sample in all inputs, padding included."""
        return sum(sequences.length for sequences in self.inputs)

    @property
    def has_padding(self) -> bool:
        """Whether any input has a mask of padding."""
        return any(sequences.padding is not None for sequences in self.inputs)

    def select(self, rows: Any) -> Batch:
        """Return some samples: a slice, or an array of row numbers."""
        return replace(
            self,
            inputs=tuple(sequences.select(rows) for sequences in self.inputs),
            y=rows_of(self.y, rows),
            weights=rows_of(self.weights, rows),
            counts=rows_of(self.counts, rows),
            shard=None,
        )

    @property
    def has_targets(self) -> bool:
        """Whether any sample of the whole batch counts in the mean loss; `counts` must be known."""
        if self.shard is not None:
            return self.shard.total > 0.0
        return self.counts is None or bool(self.counts.any())

    def anew(self, key: int, first: int) -> Self:
        """Return the batch with new random choices, such as hidden tokens, from the step's key.

        `first` is the row of the first sample in the batch of all ranks.
        """
        return self

    def lengths(self) -> np.ndarray:
        """Return the length of each sample in each input, without padding: (batch, n_inputs)."""
        return np.stack([sequences.lengths() for sequences in self.inputs], axis=1)

    def cut(self, at_least: Any = 1) -> Batch:
        """Return a batch on the host without the tokens that are padding in all samples.

        At least `at_least` tokens are kept: one number, or one for each input.
        """
        if not len(self) or not self.has_padding:
            return self
        longest = np.maximum(self.lengths().max(axis=0), at_least).tolist()
        inputs = tuple(sequences.cut(n) for sequences, n in zip(self.inputs, longest, strict=True))
        if self.targets_of is None:
            return replace(self, inputs=inputs)
        length = inputs[self.targets_of].length
        y = None if self.y is None else self.y[:, :length]
        weights = None if self.weights is None else self.weights[:, :length]
        return replace(self, inputs=inputs, y=y, weights=weights)

    def counts_for(self, loss: Loss) -> Any:
        """Return the weight of each sample in the mean loss: a NumPy array, (batch,)."""
        if self.weights is None:
            return loss.counts(self.y)
        return loss.counts(self.y, self.weights)

    def targets(self) -> tuple[Any, ...]:
        """Return what a loss takes besides the outputs: y, and the weights if there are any."""
        return (self.y,) if self.weights is None else (self.y, self.weights)

    def arrays(self) -> tuple[Array, ...]:
        """Return what the model takes: an array for each input."""
        return arrays_of(self.inputs)

    def within(self, context: Context) -> Context:
        """Return `context` with the padding and types of this batch."""
        return within(self.inputs, context)
