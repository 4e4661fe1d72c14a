"""A batch of samples: what a model takes, what its loss takes, and how much each sample counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npformer.core import Array, Context, Padding
from npformer.losses import Loss


@dataclass(frozen=True)
class Sequences:
    """One input of a model, for a batch of samples."""

    x: Array  # as the model takes it: (batch, length), or (batch, length, features)
    padding: Padding | None = None
    types: Array | None = None  # of the tokens: whole numbers, (batch, length)

    @property
    def length(self) -> int:
        """The number of tokens of each sample, padding included."""
        return int(self.x.shape[1]) if self.x.ndim > 1 else 1

    def lengths(self) -> np.ndarray:
        """Return how many tokens each sample needs: up to its last kept one, at least 1."""
        if self.padding is None:
            return np.full(len(self.x), self.length)
        mask = self.padding.on_host()
        last = mask.shape[1] - mask[:, ::-1].argmax(axis=1)
        return np.where(mask.any(axis=1), last, 1)

    def of_rows(self, rows: Any) -> Sequences:
        """Return some samples: a slice, or an array of row numbers."""
        padding = None if self.padding is None else self.padding.of_rows(rows)
        return Sequences(self.x[rows], padding, None if self.types is None else self.types[rows])

    def cut(self, length: int) -> Sequences:
        """Return the first tokens of each sample, on the host; without padding all are needed."""
        if self.padding is None or length >= self.length:
            return self
        types = None if self.types is None else self.types[:, :length]
        return Sequences(self.x[:, :length], Padding(self.padding.on_host()[:, :length]), types)


@dataclass(frozen=True)
class Batch:
    """Samples that have been checked: on the host, or on the model's backend."""

    inputs: tuple[Sequences, ...]  # one for each input of the model, in the order of `forward`
    y: Array | None = None  # targets, as the loss takes them
    weights: Array | None = None  # of the targets in the mean: (batch,) or (batch, length)
    counts: Array | None = None  # how much each sample counts in it: NumPy array, (batch,)
    targets_of: int | None = None  # the input whose tokens have a target each; None: samples have

    def __len__(self) -> int:
        rows: Any = self.inputs[0].x if self.inputs else self.y
        return len(rows)

    def of_rows(self, rows: Any) -> Batch:
        """Return some samples: a slice, or an array of row numbers."""
        y, weights, counts = (
            None if array is None else array[rows] for array in (self.y, self.weights, self.counts)
        )
        inputs = tuple(each.of_rows(rows) for each in self.inputs)
        return Batch(inputs, y, weights, counts, self.targets_of)

    def lengths(self) -> np.ndarray:
        """Return the length of each sample in each input, without padding: (batch, n_inputs)."""
        return np.stack([each.lengths() for each in self.inputs], axis=1)

    def cut(self, at_least: Any = 1) -> Batch:
        """Return a batch on the host without the tokens that are padding in all samples.

        So many tokens are kept `at_least`: a number, or one for each input.
        """
        if not len(self) or all(each.padding is None for each in self.inputs):
            return self
        longest = np.maximum(self.lengths().max(axis=0), at_least).tolist()
        inputs = tuple(each.cut(n) for each, n in zip(self.inputs, longest, strict=True))
        y, weights = self.y, self.weights
        if self.targets_of is not None:
            length = inputs[self.targets_of].length
            y = None if y is None else y[:, :length]
            weights = None if weights is None else weights[:, :length]
        return replace(self, inputs=inputs, y=y, weights=weights)

    def counts_for(self, loss: Loss) -> Any:
        """Return how much each sample counts in the mean loss: a NumPy array, (batch,)."""
        return loss.counts(self.y) if self.weights is None else loss.counts(self.y, self.weights)

    def targets(self) -> tuple[Any, ...]:
        """Return what a loss takes beside the outputs: y, and the weights if there are any."""
        return (self.y,) if self.weights is None else (self.y, self.weights)

    def arrays(self) -> tuple[Array, ...]:
        """Return what the model takes: an array for each input."""
        return tuple(each.x for each in self.inputs)

    def given(self) -> tuple[Any, Any, Any]:
        """Return x, mask and types as users give them: arrays, or for two inputs tuples of them."""
        several = [(e.x, e.padding and e.padding.mask, e.types) for e in self.inputs]
        return several[0] if len(several) == 1 else tuple(zip(*several, strict=True))  # type: ignore[return-value]

    def within(self, context: Context) -> Context:
        """Return `context` with the padding and types of this batch."""
        if all(each.padding is None and each.types is None for each in self.inputs):
            return context
        first, *second = self.inputs
        memory = second[0] if second else Sequences(first.x)
        return replace(
            context,
            padding=first.padding,
            types=first.types,
            memory_padding=memory.padding,
            memory_types=memory.types,
        )


def per_input(n: int) -> str:
    """Return what masks and types are for n inputs, in words."""
    return "one array, or None" if n == 1 else "a tuple with an array, or None, for each"


def as_inputs(x: Any, mask: Any = None, types: Any = None) -> tuple[Sequences, ...]:
    """Return the inputs of a batch from a user's arrays: one, or a tuple with one for each input.

    Nothing is checked but that there are as many of each.
    """
    xs = x if isinstance(x, tuple) else (x,)
    masks, its_types = (
        (None,) * len(xs) if given is None else given if isinstance(given, tuple) else (given,)
        for given in (mask, types)
    )
    for name, several in (("mask", masks), ("types", its_types)):
        if len(several) != len(xs):
            raise ValueError(
                f"{name} is for {len(several)} inputs and x for {len(xs)}; expected "
                f"{per_input(len(xs))}"
            )
    return tuple(
        Sequences(x, None if mask is None else Padding(mask), of_tokens)
        for x, mask, of_tokens in zip(xs, masks, its_types, strict=True)
    )
