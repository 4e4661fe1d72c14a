"""Samples that stay in files: all are checked once, in slices, then read a batch at a time.

Memory holds only a few numbers of each sample: its length, its place in the order, its weight in
the loss, and its target if it has just one. Everything else is read when a batch needs it.
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
from npformer.core.support.explained_errors import add_place_to_errors
from npformer.core.support.progress_bar import progress_bar
from npformer.core.support.weights import exponent_of
from npformer.data.read_ahead import ReadAhead
from npformer.data.samples import Samples, describe_samples, is_stored, read_inputs
from npformer.data.stored import read
from npformer.data.weights import check_weights, target_weights
from npformer.models.batch import Batch
from npformer.models.losses import Loss

BYTES_AT_ONCE = 1 << 24
"""About how many bytes of samples, and of a model's results for them, are in memory at a time."""

MOST_AT_ONCE = 4096
"""The most samples that are read at a time."""

BAR_DELAY = 3.0
"""Seconds after which a progress bar appears while samples are checked."""


def rows_at_once(model: Any, inputs: tuple[Sequences, ...]) -> int:
    """Return how many samples are read at a time, whatever the number of ranks."""
    input_bytes = 0  # of one sample
    for sequences in inputs:
        itemsize = np.dtype(sequences.x.dtype).itemsize
        input_bytes += math.prod(sequences.x.shape[1:]) * itemsize
    output_bytes = 8 * model.numbers_returned(inputs)
    n_rows = BYTES_AT_ONCE // max(input_bytes, output_bytes)
    return int(max(1, min(MOST_AT_ONCE, n_rows)))


def location_of(rows: slice) -> str:
    """Return the beginning of a message about an error in these samples."""
    return (
        f"among the samples from {rows.start} to {rows.stop - 1}, of which the first is number 0 "
        "here: "
    )


class StoredSamples(Samples):
    """Samples with targets that stay in files.

    The constructor checks all of them, each rank its own slices. Samples that are read later are
    checked again, because the files may have changed.

    Parameters
    ----------
    model : Model
    inputs : tuple of Sequences
    y : array
        At least one array of the inputs, or y, is in files.
    loss : Loss
    sample_weight : array, optional
    ranks : Communicator
        The ranks, which check the samples together.
    progress : bool
        Whether to show a progress bar while all samples are checked, if that takes long.
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
        self._model = model
        self._loss = loss
        self._ranks = ranks
        self._rows: np.ndarray | None = None  # of a `subset`; None: all
        self._reader = ReadAhead()  # shared with subsets: one read at a time
        self._rows_at_once = rows_at_once(model, inputs)
        self.lengths_with_padding = tuple(sequences.length for sequences in inputs)
        tokens_have_targets = model.targets_of is not None
        weights = sample_weight
        if weights is not None and not (tokens_have_targets and is_stored(weights)):
            n_axes = 2 if tokens_have_targets and np.ndim(weights) > 1 else 1
            target_shape = tuple(inputs[model.targets_of or 0].x.shape[:n_axes])
            weights = check_weights(np.asarray(weights))
            weights = target_weights(weights, target_shape, loss, model.dtype)
        self.batch = Batch(())  # the arrays that memory holds for all samples
        if not tokens_have_targets:
            if y.ndim > 1:  # a model of classes refuses it; do not read it, it may be too large
                model.check_targets(read(y, slice(0, 1)), (1,), loss)
            y = np.array(y)  # small, and often needed
            self.batch = Batch((), y, weights)
        self._inputs = inputs
        self._y = y
        self._weights = weights
        self._exponent = self._exponent_of_weights()
        for rank, shapes, first_shapes in self._ranks.unlike_first(self._shapes_and_dtypes()):
            raise ValueError(  # otherwise the shards would not fit together
                f"x, y, mask, types and weights have (shape, dtype) {shapes} on rank {rank}, "
                f"and {first_shapes} on rank 0; expected the same files on all ranks. Each "
                "reads its own shard of every batch"
            )
        with progress_bar(
            progress and self._ranks.rank == 0,
            total=sum(rows.stop - rows.start for rows in self._slices_of_rank()),
            desc="checking the data",
            unit=" samples",
            delay=BAR_DELAY,
            leave=False,
        ) as bar:
            self._check_all(bar)

    def __len__(self) -> int:
        return len(self._inputs[0].x) if self._rows is None else len(self._rows)

    def select(self, rows: Any) -> Batch:
        """Read and check the samples in `rows`: a slice, or an array of row numbers."""
        return self._reader.get(self._read_rows, rows)

    def expect(self, rows: Callable[[], np.ndarray]) -> None:
        """Announce the samples that `select` will need next, so that a thread may read them."""
        self._reader.expect(self._read_rows, rows)

    def subset(self, rows: np.ndarray) -> StoredSamples:
        """Return a subset that behaves like a complete data set; its samples stay in the files."""
        other = copy.copy(self)
        other._rows = rows if self._rows is None else self._rows[rows]
        other.batch = self.batch.select(rows)
        other.lengths = None if self.lengths is None else self.lengths[rows]
        other._counts = self._counts[rows]
        digest = hashlib.sha256(f"{self.summary} {rows.dtype.str}".encode())
        digest.update(np.ascontiguousarray(rows).data)
        other.summary = describe_samples(len(rows), self._inputs, digest)
        return other

    def pieces(self, rows: slice) -> Iterator[tuple[int, Batch]]:
        """Yield batches, read one at a time, each with the number of its first sample."""
        for start in range(rows.start, rows.stop, self._rows_at_once):
            yield start, self.select(slice(start, min(start + self._rows_at_once, rows.stop)))

    def counts_for(self, loss: Loss) -> np.ndarray:
        """Return how much each sample counts in the mean loss, (n,). All ranks must call it."""
        if loss is not self._loss:  # classes have weights now
            self._loss = loss
            if self.y is not None:
                self._counts = super().counts_for(loss)
            else:
                counts = [self.select(rows).counts_for(loss) for rows in self._slices_of_rank()]
                self._counts = self._gather_numbers(counts, np.zeros(0))
        return self._counts

    def sum_of(self, numbers: Callable[[Batch], np.ndarray]) -> np.ndarray:
        """Return the sum of `numbers` over all samples. All ranks must call it."""
        if self.y is not None:
            return super().sum_of(numbers)
        sum_of_rank = sum(numbers(self.select(rows)) for rows in self._slices_of_rank())
        return np.asarray(sum(self._ranks.gather(sum_of_rank)))

    def _check_all(self, bar: Any) -> None:
        """Read and check all samples, each rank its slices, and store what is needed later."""
        lengths = []
        counts = []
        digests = []
        note = None
        has_padding = np.zeros(len(self._inputs), dtype=bool)
        for rows in self._slices_of_rank():
            inputs, y, weights = self._read(rows)
            with add_place_to_errors(location_of(rows)):
                batch = self._check(inputs, y, weights)
            has_padding |= [sequences.padding is not None for sequences in batch.inputs]
            note = self._model.note(batch, note)
            lengths.append(batch.lengths())
            counts.append(batch.counts_for(self._loss))
            digests.append(_digest(_arrays(inputs, y, weights)))
            bar.update(len(batch))
        of_ranks = self._ranks.gather((has_padding, note, b"".join(digests)))
        paddings, notes, digests_of_ranks = zip(*of_ranks, strict=True)
        self.notes = [note for note in notes if note is not None]
        self._has_padding = np.any(paddings, axis=0)
        all_lengths = self._gather_numbers(lengths, np.zeros((0, len(has_padding)), "int64"))
        self.lengths = all_lengths if self._has_padding.any() else None
        self._counts = self._gather_numbers(counts, np.zeros(0))
        digest = hashlib.sha256(repr(self._shapes_and_dtypes()).encode())
        digest.update(b"".join(digests_of_ranks))
        self.summary = describe_samples(len(self), self._inputs, digest)

    def _slices_of_rank(self) -> list[slice]:
        """Return the slices of rows that this rank checks.

        Where slices begin and end does not depend on the number of ranks.
        """
        n = len(self)
        n_slices = -(-n // self._rows_at_once)
        starts = range(0, n, self._rows_at_once)[self._ranks.shard(n_slices)]
        return [slice(start, min(start + self._rows_at_once, n)) for start in starts]

    def _shapes_and_dtypes(self) -> list[Any]:
        """Return the shape and the dtype of each array."""
        arrays = _arrays(self._inputs, self._y, self._weights)
        return [None if a is None else (a.shape, np.dtype(a.dtype).str) for a in arrays]

    def _gather_numbers(self, arrays: list[Any], empty: np.ndarray) -> np.ndarray:
        """Return the numbers of all samples from the arrays of all ranks.

        `arrays` has one for each slice of this rank, and `empty` gives their dtype and shape.
        """
        joined = np.concatenate([empty, *arrays]).astype(empty.dtype)
        return np.asarray(self._ranks.concatenate(joined))

    def _read_rows(self, rows: Any) -> Batch:
        if self._rows is not None:
            rows = self._rows[rows]
        return self._add_masks(self._check(*self._read(rows)))

    def _read(self, rows: Any) -> tuple[tuple[Sequences, ...], Any, Any]:
        """Return rows of inputs, targets and weights."""
        inputs = read_inputs(self._inputs, rows)
        weights = read(self._weights, rows)
        if self._exponent:
            weights = np.ldexp(weights.astype("float64"), -self._exponent)
        return inputs, read(self._y, rows), weights

    def _exponent_of_weights(self) -> int:
        """Return the e for which dividing weights in files by 2^e brings the largest near 1."""
        if not is_stored(self._weights):
            return 0
        maxima = []
        for start in range(0, len(self._weights), self._rows_at_once):
            weights = read(self._weights, slice(start, start + self._rows_at_once))
            maxima.append(float(weights.max(initial=0.0)))
        return exponent_of(max(maxima, default=0.0))

    def _check(self, inputs: tuple[Sequences, ...], y: Any, weights: Any) -> Batch:
        """Return samples as a batch, after checking them."""
        if not len(inputs[0].x):  # this rank's shard of a small batch
            return Batch(inputs, y, weights, targets_of=self._model.targets_of)
        batch: Batch = self._model.check_samples(inputs, y, self._loss, weights)
        return batch

    def _add_masks(self, batch: Batch) -> Batch:
        """Return a batch with a mask for each input that has padding in any sample of all."""
        inputs = []
        for sequences, has_padding in zip(batch.inputs, self._has_padding, strict=True):
            if has_padding and sequences.padding is None:
                mask = np.ones(sequences.x.shape[:2], dtype=bool)
                inputs.append(replace(sequences, padding=Padding(mask)))
            else:
                inputs.append(sequences)
        return replace(batch, inputs=tuple(inputs))


def _arrays(inputs: tuple[Sequences, ...], y: Any, weights: Any) -> list[Any]:
    """Return all arrays of samples, in a fixed order; None for one that is absent."""
    arrays: list[Any] = []
    for sequences in inputs:
        arrays += [sequences.x, sequences.mask, sequences.types]
    return [*arrays, y, weights]


def _digest(arrays: list[Any]) -> bytes:
    """Return a digest of the numbers in arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
