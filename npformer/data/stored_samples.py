"""Samples that stay in files: read a batch at a time, and looked at once, in pieces.

A few numbers are kept of each sample: its length, its place in the order, its weight in the loss,
and its target if it has just one. Everything else is read when a batch needs it.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Padding
from npformer.core.inputs import Sequences
from npformer.core.support.explained_errors import located_errors
from npformer.core.support.progress_bar import progress_bar
from npformer.core.support.weights import exponent_of
from npformer.data.read_ahead import ReadAhead
from npformer.data.samples import Samples, in_words, is_stored, read_inputs
from npformer.data.stored import read
from npformer.data.weights import checked_weights, target_weights
from npformer.models.batch import Batch
from npformer.models.losses import Loss

BYTES_AT_ONCE = 1 << 24
"""About how many bytes of samples, and of what a model makes of them, are in memory at a time."""

MOST_AT_ONCE = 4096
"""The most samples that are read at a time."""

SOON = 3.0
"""Seconds after which a bar shows how many samples have been checked."""


def rows_at_once(model: Any, inputs: tuple[Sequences, ...]) -> int:
    """Return how many samples are read at a time, whatever the number of ranks."""
    of_inputs = sum(math.prod(e.x.shape[1:]) * np.dtype(e.x.dtype).itemsize for e in inputs)
    of_row = max(of_inputs, 8 * model.numbers_returned(inputs))
    return int(max(1, min(MOST_AT_ONCE, BYTES_AT_ONCE // of_row)))


def among(rows: slice) -> str:
    """Return the beginning of an error about some of the samples."""
    return (
        f"among the samples from {rows.start} to {rows.stop - 1}, of which the first is number 0 "
        "here: "
    )


class StoredSamples(Samples):
    """Samples with targets that stay in files.

    All of them are checked when this is made, each rank its part; what is read later is checked
    again, because the files may have changed.

    Parameters
    ----------
    model : Model
    inputs : tuple of Sequences
    y : array
        At least one of all these arrays is in files.
    loss : Loss
    sample_weight : array, optional
    ranks : Communicator
        They check the samples together.
    progress : bool
        Whether to show a bar while all samples are checked, if that takes long.
    """

    def __init__(
        self,
        model: Any,
        inputs: tuple[Sequences, ...],
        y: Any,
        loss: Loss,
        sample_weight: Any,
        ranks: Any,
        progress: bool = False,
    ) -> None:
        self._model, self._loss = model, loss
        self._ranks = ranks
        self._rows: np.ndarray | None = None  # of the samples of a `subset`
        self._reader = ReadAhead()  # also that of subsets: one read at a time
        self._at_once = rows_at_once(model, inputs)
        self.padded_lengths = tuple(each.length for each in inputs)
        of_tokens, weights = model.targets_of is not None, sample_weight
        if weights is not None and not (of_tokens and is_stored(weights)):
            by_token = of_tokens and np.ndim(weights) > 1
            answers = tuple(inputs[model.targets_of or 0].x.shape[: 1 + by_token])
            weights = checked_weights(np.asarray(weights))
            weights = target_weights(weights, answers, loss, model.dtype)
        self.batch = Batch(())  # what is in memory of all samples
        if not of_tokens:
            if y.ndim > 1:  # not what a model of classes takes, and then perhaps too large
                model.check_targets(read(y, slice(0, 1)), (1,), loss)
            y = np.array(y)  # small, and often asked for
            self.batch = Batch((), y, weights)
        self._inputs, self._y, self._weights = inputs, y, weights
        self._exponent = self._exponent_of_weights()
        for rank, heads, first in self._ranks.unlike_first(self._heads()):
            raise ValueError(  # or their parts would not fit
                f"x, y, mask, types and weights have (shape, dtype) {heads} on rank {rank}, "
                f"and {first} on rank 0; expected the same files on all ranks. Each "
                "reads its own part of every batch"
            )
        with progress_bar(
            progress and self._ranks.rank == 0,
            total=sum(piece.stop - piece.start for piece in self._own_pieces()),
            desc="checking the data",
            unit=" samples",
            delay=SOON,
            leave=False,
        ) as shown:
            self._look(shown)

    def __len__(self) -> int:
        return len(self._inputs[0].x) if self._rows is None else len(self._rows)

    def select(self, rows: Any) -> Batch:
        """Return some samples, read and checked: a slice, or an array of row numbers."""
        return self._reader.get(self._read_rows, rows)

    def expect(self, rows: Callable[[], np.ndarray]) -> None:
        """Say which samples `select` will be asked for next, so that a thread may read them."""
        self._reader.expect(self._read_rows, rows)

    def subset(self, rows: np.ndarray) -> StoredSamples:
        """Return some of the samples, which stay where they are."""
        other = copy.copy(self)
        other._rows = rows if self._rows is None else self._rows[rows]
        other.batch = self.batch.select(rows)
        other.lengths = None if self.lengths is None else self.lengths[rows]
        other._counts = self._counts[rows]
        found = hashlib.sha256(f"{self.in_short} {rows.dtype.str}".encode())
        found.update(np.ascontiguousarray(rows).data)
        other.in_short = in_words(len(rows), self._inputs, found)
        return other

    def pieces(self, rows: slice) -> Iterator[tuple[int, Batch]]:
        """Yield samples, read a few at a time, and the number of the first."""
        for start in range(rows.start, rows.stop, self._at_once):
            yield start, self.select(slice(start, min(start + self._at_once, rows.stop)))

    def counts_for(self, loss: Loss) -> np.ndarray:
        """Return how much each sample counts in the mean loss, (n,). All ranks must call it."""
        if loss is not self._loss:  # classes have weights now
            self._loss = loss
            if self.y is not None:
                self._counts = super().counts_for(loss)
            else:
                own = [self.select(piece).counts_for(loss) for piece in self._own_pieces()]
                self._counts = self._joined_numbers(own, np.zeros(0))
        return self._counts

    def sum_of(self, numbers: Callable[[Batch], np.ndarray]) -> np.ndarray:
        """Return the sum over all samples of some numbers. All ranks must call it."""
        if self.y is not None:
            return super().sum_of(numbers)
        own = sum(numbers(self.select(piece)) for piece in self._own_pieces())
        return np.asarray(sum(self._ranks.gather(own)))

    def _look(self, shown: Any) -> None:
        """Read and check all samples, each rank its part, and note what is needed later."""
        lengths, counts, digests, note = [], [], [], None
        padded = np.zeros(len(self._inputs), dtype=bool)
        for piece in self._own_pieces():
            given = self._read(piece)
            with located_errors(among(piece)):
                batch = self._checked(*given)
            padded |= [each.padding is not None for each in batch.inputs]
            note = self._model.note(batch, note)
            lengths.append(batch.lengths())
            counts.append(batch.counts_for(self._loss))
            found = hashlib.sha256()
            for array in _arrays(*given):
                if array is not None:
                    found.update(np.ascontiguousarray(array).data)
            digests.append(found.digest())
            shown.update(len(batch))
        of_ranks = self._ranks.gather((padded, note, b"".join(digests)))
        self.notes = [its_note for _, its_note, _ in of_ranks if its_note is not None]
        self._padded = np.any([its_padded for its_padded, _, _ in of_ranks], axis=0)
        of_all = self._joined_numbers(lengths, np.zeros((0, len(padded)), "int64"))
        self.lengths = of_all if self._padded.any() else None
        self._counts = self._joined_numbers(counts, np.zeros(0))
        found = hashlib.sha256(repr(self._heads()).encode())
        found.update(b"".join(its_digests for _, _, its_digests in of_ranks))
        self.in_short = in_words(len(self), self._inputs, found)

    def _own_pieces(self) -> list[slice]:
        """Return the rows that this rank checks: pieces independent of the number of ranks."""
        n = len(self)
        starts = range(0, n, self._at_once)[self._ranks.shard(-(-n // self._at_once))]
        return [slice(start, min(start + self._at_once, n)) for start in starts]

    def _heads(self) -> list[Any]:
        """Return shape and dtype of each array."""
        arrays = _arrays(self._inputs, self._y, self._weights)
        return [None if a is None else (a.shape, np.dtype(a.dtype).str) for a in arrays]

    def _joined_numbers(self, own: list[Any], none: np.ndarray) -> np.ndarray:
        """Return numbers of all samples, from those of this rank's pieces, if it has any."""
        joined = np.concatenate([none, *own]).astype(none.dtype)
        return np.asarray(self._ranks.concatenate(joined))

    def _read_rows(self, rows: Any) -> Batch:
        if self._rows is not None:
            rows = self._rows[rows]
        return self._with_masks(self._checked(*self._read(rows)))

    def _read(self, rows: Any) -> tuple[tuple[Sequences, ...], Any, Any]:
        """Return rows of inputs, targets and weights."""
        inputs = read_inputs(self._inputs, rows)
        weights = read(self._weights, rows)
        if self._exponent:
            weights = np.ldexp(weights.astype("float64"), -self._exponent)
        return inputs, read(self._y, rows), weights

    def _exponent_of_weights(self) -> int:
        """Return e if weights in files are to be divided by 2^e, so that the largest is near 1."""
        if not is_stored(self._weights):
            return 0
        starts = range(0, len(self._weights), self._at_once)
        weights = (read(self._weights, slice(i, i + self._at_once)) for i in starts)
        largest = max((float(rows.max(initial=0.0)) for rows in weights), default=0.0)
        return exponent_of(largest)

    def _checked(self, inputs: tuple[Sequences, ...], y: Any, weights: Any) -> Batch:
        """Return checked samples."""
        if not len(inputs[0].x):  # a rank's part of a small batch
            return Batch(inputs, y, weights, targets_of=self._model.targets_of)
        found: Batch = self._model.check_samples(inputs, y, self._loss, weights)
        return found

    def _with_masks(self, batch: Batch) -> Batch:
        """Return samples with a mask for each input that has padding in any of all samples."""
        inputs = [
            replace(each, padding=Padding(np.ones(each.x.shape[:2], dtype=bool)))
            if padded and each.padding is None
            else each
            for each, padded in zip(batch.inputs, self._padded, strict=True)
        ]
        return replace(batch, inputs=tuple(inputs))


def _arrays(inputs: tuple[Sequences, ...], y: Any, weights: Any) -> list[Any]:
    """Return all arrays of some samples, in a fixed order."""
    return [a for each in inputs for a in (each.x, each.mask, each.types)] + [y, weights]
