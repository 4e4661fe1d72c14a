"""Samples that stay in files: read a batch at a time, and looked at once, in pieces.

What is kept of each sample is a few numbers: its length, its place in the order, its weight in the
loss, its label if it has one alone. All else is read when a batch needs it.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from npformer.core import Padding
from npformer.core.bar import bar
from npformer.data.batch import Batch
from npformer.data.lengths import lengths_of
from npformer.data.stored import is_stored, read
from npformer.distributed import Communicator
from npformer.losses import Loss
from npformer.trainable import SequenceClassifier
from npformer.trainable.weights import label_weights, target_weights

BYTES_AT_ONCE = 1 << 24
"""About how many bytes of x, and of what a model makes of it, are in memory at a time."""

MOST_AT_ONCE = 4096
"""The most samples that are read at a time."""

SOON = 3.0
"""Seconds after which a bar shows how many samples have been looked at."""


def rows_at_once(x: Any, model: SequenceClassifier) -> int:
    """Return how many samples of an array are read at a time, whatever the number of ranks."""
    answers = math.prod(x.shape[1:2]) if model.per_token else 1
    of_outputs = 8 * answers * model.loss.n_outputs(model.n_classes)
    of_row: int = max(math.prod(x.shape[1:]) * np.dtype(x.dtype).itemsize, of_outputs)
    return max(1, min(MOST_AT_ONCE, BYTES_AT_ONCE // of_row))


@dataclass
class Seen:
    """What a look at some of the samples has found."""

    padded: bool = False  # whether any sample has a mask
    masked: bool = False  # whether any token is padding
    at_padding: np.ndarray | None = None  # for each token id, whether padding has it
    elsewhere: np.ndarray | None = None  # whether a token has it

    def note(self, batch: Batch, vocab_size: int | None) -> Seen:
        """Note the padding of some samples, and its ids if there is a vocabulary."""
        if batch.padding is None:
            return self
        mask, self.padded = batch.padding.on_host(), True
        self.masked |= not mask.all()
        if vocab_size is not None:
            if self.at_padding is None or self.elsewhere is None:
                self.at_padding, self.elsewhere = np.zeros((2, vocab_size), dtype=bool)
            self.at_padding[batch.x[~mask]] = True
            self.elsewhere[batch.x[mask]] = True
        return self

    def join(self, other: Seen) -> None:
        """Add what another rank has found."""
        self.padded |= other.padded
        self.masked |= other.masked
        self.at_padding = _either(self.at_padding, other.at_padding)
        self.elsewhere = _either(self.elsewhere, other.elsewhere)

    def padding_id(self) -> int | None:
        """Return the id at all padding, if there is only one and no token has it."""
        if self.at_padding is None or self.elsewhere is None:
            return None
        ids = self.at_padding.nonzero()[0]
        return int(ids[0]) if len(ids) == 1 and not self.elsewhere[ids[0]] else None


def _either(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    """Return where one of two is True; a rank without samples has none."""
    if a is None or b is None:
        return b if a is None else a
    return np.asarray(a | b)


class StoredSamples:
    """Labelled samples that stay in files, with what a training asks of a `Batch` of all of them.

    All of them are checked when this is made, each rank its part; what is read later is checked
    again, for the files may have changed.

    Parameters
    ----------
    model : SequenceClassifier
    arrays : (x, y, mask, types)
        As for `SequenceClassifier.check`; some of them in files. Mask and types may be None.
    loss : Loss
    sample_weight : array, optional
    ranks : Communicator
    progress : bool
        Whether a bar is shown while all samples are looked at, if that takes long.

    Attributes
    ----------
    y : array or None
        One entry for each sample, in memory; None if tokens have labels of their own.
    at_once : int
        How many samples are read at a time, where all are.
    padded_length : int
        Tokens of a sample, padding included.
    lengths : int array, shape (n,), or None
        Of the samples without the padding at their ends; None if there is no padding.
    seen : Seen
    digest : str
        Of all samples, whatever the number of ranks that read them.
    """

    def __init__(
        self,
        model: SequenceClassifier,
        arrays: Sequence[Any],
        loss: Loss,
        sample_weight: Any = None,
        ranks: Communicator | None = None,
        progress: bool = False,
    ) -> None:
        self._model, self._loss = model, loss
        self._ranks = ranks or Communicator()
        self._rows: np.ndarray | None = None  # of the samples of a `subset`
        x, y, mask, types = arrays
        self.at_once = rows_at_once(x, model)
        self.padded_length = int(x.shape[1]) if len(x.shape) > 1 else 0
        weights = sample_weight
        if weights is not None and not (model.per_token and is_stored(weights)):
            by_token = model.per_token and np.ndim(weights) > 1
            answers = tuple(x.shape[: 1 + by_token])
            weights = target_weights(np.asarray(weights), answers, loss, model.dtype)
        if not model.per_token:
            if y.ndim > 1:  # not what a model of classes takes, and then perhaps too large
                self._loss.check(read(y, slice(0, 1)), (1,), model.n_classes)
            y = np.array(y)  # small, and often asked for
        self._arrays = x, y, mask, types, weights
        self.y = None if model.per_token else y
        self.weights = None if model.per_token else weights
        self._check_alike()
        with bar(
            progress and self._ranks.rank == 0,
            total=sum(piece.stop - piece.start for piece in self._pieces()),
            desc="checking the data",
            unit=" samples",
            delay=SOON,
            leave=False,
        ) as shown:
            self._look(shown)

    def __len__(self) -> int:
        return len(self._arrays[0]) if self._rows is None else len(self._rows)

    def of_rows(self, rows: Any) -> Batch:
        """Return some samples, read and checked: a slice, or an array of row numbers."""
        if self._rows is not None:
            rows = self._rows[rows]
        return self._padded(self._batch(self._read(rows)))

    def subset(self, rows: np.ndarray) -> StoredSamples:
        """Return some of the samples, which stay where they are."""
        other = copy.copy(self)
        other._rows = rows if self._rows is None else self._rows[rows]
        other.y = None if self.y is None else self.y[rows]
        other.weights = None if self.weights is None else self.weights[rows]
        other.lengths = None if self.lengths is None else self.lengths[rows]
        other._counts = self._counts[rows]
        found = hashlib.sha256(f"{self.digest} {rows.dtype.str}".encode())
        found.update(np.ascontiguousarray(rows).data)
        other.digest = found.hexdigest()
        return other

    def counts_for(self, loss: Loss) -> np.ndarray:
        """Return how much each sample counts in the mean loss, (n,). All ranks ask for it."""
        if loss is not self._loss:  # classes have weights now
            self._loss = loss
            if self.y is not None:
                targets = Batch(self.y, self.y, weights=self.weights)
                self._counts = np.asarray(targets.counts_for(loss))
            else:
                own = [self.of_rows(piece).counts_for(loss) for piece in self._pieces()]
                self._counts = self._joined(own, "float64")
        return self._counts

    def label_weights(self, n_classes: int) -> np.ndarray:
        """Return how much the labels of each class weigh together. All ranks ask for it."""
        if self.y is not None:
            return label_weights(self.y, self.weights, n_classes)
        own = np.zeros(n_classes)
        for piece in self._pieces():
            batch = self.of_rows(piece)
            own += label_weights(batch.y, batch.weights, n_classes)
        total: np.ndarray = self._ranks.agree(*own.tolist()).sum(axis=0)
        return total

    def _look(self, shown: Any) -> None:
        """Read and check all samples, each rank its part, and note what is asked for later."""
        model, ranks = self._model, self._ranks
        lengths, counts, digests = [], [], []
        # Masks tell which id is padding, if the model does not know it.
        asks = self._arrays[2] is not None and model.padding_id is None
        self.seen = Seen()
        for piece in self._pieces():
            given = self._read(piece)
            try:
                batch = self._batch(given)
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"among the samples from {piece.start} to {piece.stop - 1}, of which the first "
                    f"is number 0 here: {error}"
                ) from error
            self.seen.note(batch, model.vocab_size if asks else None)
            mask = None if batch.padding is None else batch.padding.on_host()
            lengths.append(
                np.full(len(batch), self.padded_length) if mask is None else lengths_of(mask)
            )
            counts.append(batch.counts_for(self._loss))
            found = hashlib.sha256()
            for array in given:
                if array is not None:
                    found.update(np.ascontiguousarray(array).data)
            digests.append(found.digest())
            shown.update(len(batch))
        for of_rank in ranks.gather(self.seen):
            self.seen.join(of_rank)
        of_all = self._joined(lengths, "int64")
        self.lengths = of_all if self.seen.padded else None
        self._counts = self._joined(counts, "float64")
        found = hashlib.sha256(repr(self._heads()).encode())
        found.update(b"".join(ranks.gather(b"".join(digests))))
        self.digest = found.hexdigest()

    def _pieces(self) -> list[slice]:
        """Return the rows that this rank looks at: pieces that do not depend on who shares them."""
        n = len(self)
        starts = range(0, n, self.at_once)[self._ranks.shard(-(-n // self.at_once))]
        return [slice(start, min(start + self.at_once, n)) for start in starts]

    def _heads(self) -> list[Any]:
        """Return shape and dtype of each array."""
        return [None if a is None else (a.shape, np.dtype(a.dtype).str) for a in self._arrays]

    def _check_alike(self) -> None:
        """Check that all ranks have arrays of the same shapes, or their parts would not fit."""
        for rank, heads in enumerate(of_ranks := self._ranks.gather(self._heads())):
            if heads != of_ranks[0]:
                raise ValueError(
                    f"x, y, mask, types and weights have (shape, dtype) {heads} on rank {rank}, "
                    f"and {of_ranks[0]} on rank 0; expected the same files on all ranks. Each "
                    "reads its own part of every batch"
                )

    def _joined(self, own: list[Any], dtype: str) -> np.ndarray:
        """Return numbers of all samples, from those of this rank's pieces, if it has any."""
        joined = np.concatenate([np.zeros(0, dtype), *own])
        return self._ranks.concatenate(joined.astype(dtype))

    def _read(self, rows: Any) -> tuple[np.ndarray | None, ...]:
        """Return rows of all arrays."""
        return tuple(None if array is None else read(array, rows) for array in self._arrays)

    def _batch(self, given: tuple[Any, ...]) -> Batch:
        """Return checked samples."""
        x, y, mask, types, weights = given
        if not len(x):  # a rank's part of a small batch
            padding = None if mask is None else Padding(mask)
            return Batch(x, y, padding, types, weights)
        return self._model.check(x, y, mask, types, loss=self._loss, sample_weight=weights)

    def _padded(self, batch: Batch) -> Batch:
        """Return samples with a mask, if any of all samples has one."""
        if batch.padding is not None or not self.seen.padded:
            return batch
        return replace(batch, padding=Padding(np.ones(batch.x.shape[:2], dtype=bool)))


Samples: TypeAlias = Batch | StoredSamples
"""All samples of a training: in memory, or in files."""
