"""Samples: the samples of a training or an evaluation, from a user's arrays.

`stored_samples` has samples in files with the same interface, so callers need not know which of the
two they have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from npformer.core import Array, Layer, Padding, a_type
from npformer.core.inputs import Sequences, inputs_of_arrays
from npformer.data.stored import ShardedArray, read
from npformer.models.batch import Batch
from npformer.models.losses import Loss

Data = Sequence[Any]
"""(x, y), (x, y, mask) or (x, y, mask, types), on the host or in files; mask may be None. For a
model with two inputs, x, mask and types are tuples with one for each."""


@dataclass(eq=False)
class Samples:
    """Checked samples with targets.

    Attributes
    ----------
    notes : list
        Results of the model's `note` for slices of the samples, if there is padding.
    """

    batch: Batch
    notes: list[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.batch)

    def select(self, rows: Any) -> Batch:
        """Return the samples in `rows`: a slice, or an array of row numbers."""
        return self.batch.select(rows)

    def expect(self, rows: Callable[[], np.ndarray]) -> None:
        """Announce the samples that `select` will need next; in memory this does nothing."""

    def subset(self, rows: np.ndarray) -> Samples:
        """Return a subset that behaves like a complete data set."""
        return Samples(self.batch.select(rows), self.notes)

    def pieces(self, rows: slice) -> Iterator[tuple[int, Batch]]:
        """Yield batches that fit into memory, each with the number of its first sample."""
        if rows.start < rows.stop:
            yield rows.start, self.select(rows)

    @property
    def y(self) -> Array | None:
        """The targets of all samples; None if tokens have targets that stay in files."""
        return self.batch.y

    @cached_property
    def lengths_with_padding(self) -> tuple[int, ...]:
        """The number of tokens of a sample in each input, padding included."""
        return tuple(sequences.length for sequences in self.batch.inputs)

    @cached_property
    def lengths(self) -> np.ndarray | None:
        """The lengths of samples without padding, (n, n_inputs); None if there is no padding."""
        if not any(sequences.padding for sequences in self.batch.inputs):
            return None
        return self.batch.lengths()

    def counts_for(self, loss: Loss) -> np.ndarray:
        """Return how much each sample counts in the mean loss, (n,). All ranks must call it."""
        return np.asarray(self.batch.counts_for(loss))

    def sum_of(self, numbers: Callable[[Batch], np.ndarray]) -> np.ndarray:
        """Return the sum of `numbers` over all samples. All ranks must call it."""
        return numbers(self.batch)

    @cached_property
    def summary(self) -> str:
        """Shapes, and a digest that changes with the samples and with their order."""
        batch = self.batch
        digest = hashlib.sha256()
        arrays: list[Any] = []
        for sequences in batch.inputs:
            arrays += [sequences.x, sequences.mask, sequences.types]
        for array in (*arrays, *batch.targets()):
            if array is None:
                digest.update(b"none")
            else:
                digest.update(f"{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return describe_samples(len(self), batch.inputs, digest)


def describe_samples(n: int, inputs: tuple[Sequences, ...], digest: Any) -> str:
    """Return the number, the shapes and the digest of samples, for `Samples.summary`."""
    shapes = " and ".join(str(tuple(sequences.x.shape[1:])) for sequences in inputs)
    return f"{n} samples of shape {shapes} (digest {digest.hexdigest()[:16]})"


def check_labelled_inputs(model: Any, name: str, data: Data) -> tuple[tuple[Sequences, ...], Any]:
    """Return the inputs and the targets of `data`, after checking their types and lengths."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3, 4):
        size = f" of {len(data)}" if isinstance(data, tuple | list) else ""
        none = ". This model needs no y: (x, None, mask)" if model.self_supervised else ""
        raise TypeError(
            f"{name} is {a_type(data)}{size}; expected (x, y) or (x, y, mask), or with "
            f"token types (x, y, mask, types){none}"
        )
    x, y, mask, types = model.arrange(*(*data, None, None)[:4])
    y = x if y is None and model.self_supervised else y
    return check_unlabelled_inputs(model, name, x, mask, types, y=y), y


def check_unlabelled_inputs(
    model: Layer, name: str, x: Any, mask: Any = None, types: Any = None, **targets: Any
) -> tuple[Sequences, ...]:
    """Return inputs, after checking types and lengths, also those of `targets`."""
    inputs = inputs_of_arrays(model, x, mask, types)
    arrays = [*arrays_of_inputs(inputs), *targets.values()]
    lengths = {array.shape[:1] if type(array) is np.ndarray else None for array in arrays}
    if len(lengths) > 1 or lengths <= {None, (), (0,)}:  # not the usual case
        _check_arrays(inputs, targets, "" if name == "x" else f" in {name}")
    return inputs


def arrays_of_inputs(inputs: tuple[Sequences, ...]) -> list[Any]:
    """Return the arrays of all inputs: x of each, and its mask and types if it has them."""
    arrays: list[Any] = []
    for sequences in inputs:
        arrays.append(sequences.x)
        arrays += [array for array in (sequences.mask, sequences.types) if array is not None]
    return arrays


def read_inputs(inputs: tuple[Sequences, ...], rows: Any) -> tuple[Sequences, ...]:
    """Return rows of inputs in memory; the inputs may be in files."""
    return tuple(_read_sequences(sequences, rows) for sequences in inputs)


def _read_sequences(sequences: Sequences, rows: Any) -> Sequences:
    """Return rows of one input in memory."""
    mask = read(sequences.mask, rows)
    return Sequences(
        x=read(sequences.x, rows),
        padding=None if mask is None else Padding(mask),
        types=read(sequences.types, rows),
    )


def is_stored(array: object) -> bool:
    """Return whether an array stays in files and is read a few rows at a time."""
    return isinstance(array, np.memmap | ShardedArray)


def _check_arrays(inputs: tuple[Sequences, ...], targets: dict[str, Any], where: str) -> None:
    """Check that all are arrays, on the host or in files, with the same number of samples."""
    n = None
    for k, sequences in enumerate(inputs):
        index = f"[{k}]" if len(inputs) > 1 else ""
        arrays = {"x": sequences.x, "mask": sequences.mask, "types": sequences.types}
        for name, array in arrays.items():
            if name == "x" or array is not None:
                _check_array(f"{name}{index}{where}", array, n)
                n = len(inputs[0].x)
    for name, array in targets.items():
        _check_array(f"{name}{where}", array, n)


def _check_array(name: str, array: Any, n: int | None) -> None:
    """Check that `array` is one, on the host or in files; if n is known, with n samples."""
    if not isinstance(array, np.ndarray | ShardedArray):
        raise TypeError(
            f"{name} is {a_type(array)}; expected a NumPy array, in memory or "
            "memory-mapped, or what npformer.data.sharded returns. numpy.asarray makes one from "
            "lists, npformer.to_numpy from arrays on a GPU: batches are uploaded one by one"
        )
    if array.shape[:1] in ((), (0,)):
        problem = "has no samples" if array.ndim else "is a single number"
        raise ValueError(f"{name} {problem}; expected at least 1 entry, one per sample")
    if n is not None and len(array) != n:
        raise ValueError(f"{name} has {len(array)} samples and x has {n}; expected the same number")
