"""What a training draws or learns from its data before its first step, kept in its folder.

A training that goes on reads its vocabulary and its split there. The seed alone does not decide
them: another version of a library may draw otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from operator import methodcaller
from pathlib import Path
from typing import Any, Self

import numpy as np

from npformer.training.distributed import communicator_of
from npformer.training.storage.checkpoint_folder import CHECKPOINT, checked_folder
from npformer.training.storage.model_file import (
    CheckpointError,
    check_keys,
    read_model_file,
    write_model_file,
)

DRAWN = "drawn.safetensors"
"""The file, in the folder of a training."""

KIND = "Drawn"
VALUES = "values"


class Drawn:
    """What was drawn, by name, together with what it was drawn from.

    Parameters
    ----------
    folder : path, optional
        Where it is kept. None: nowhere, and everything is drawn anew.
    resume : bool
        Whether what is in the folder counts; otherwise it is replaced.
    keeps : bool
        Whether to write into the folder.
    communicator : optional
        Its first rank draws, reads and writes for all.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        resume: bool = False,
        keeps: bool = True,
        communicator: Any = None,
    ) -> None:
        self.folder = None if folder is None else checked_folder("checkpoint", folder)
        self.communicator = communicator
        # `fit` refuses a checkpoint that is not to go on, and what it was drawn with stays.
        begun = self.folder is not None and (self.folder / CHECKPOINT).exists()
        self._keeps = keeps and not begun
        self._resume = resume
        self._entries: dict[str, Any] | None = None

    @classmethod
    def make_for_training(cls, checkpoint: Any, training: Mapping[str, Any]) -> Self:
        """Return what a call of `npformer.fit` with such arguments draws."""
        return cls(
            checkpoint,
            resume=bool(training.get("resume")),
            communicator=training.get("communicator"),
        )

    def recall(self, name: str, basis: Mapping[str, Any], draw: Callable[[], Any]) -> Any:
        """Return what was drawn under a name from such a basis; if nothing was, draw it now.

        Basis and value are values for JSON.
        """
        if self.folder is None:
            return draw()
        with communicator_of(self.communicator).guard() as ranks:
            value = self._value(name, basis, draw) if ranks.rank == 0 else None
            return ranks.first(value)

    def rows(
        self,
        name: str,
        basis: Mapping[str, Any],
        n: int,
        split: Callable[[], tuple[np.ndarray, np.ndarray]],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a larger and of a smaller part of n samples, each in order."""
        if self.folder is None:
            return split()
        smaller = self.recall(name, {**basis, "n": n}, lambda: split()[1].tolist())
        in_smaller = np.zeros(n, dtype=bool)
        try:
            in_smaller[np.array(smaller, dtype="int64")] = True
        except (IndexError, TypeError, ValueError, OverflowError) as error:
            raise self.error_of_file() from error
        return np.flatnonzero(~in_smaller), np.flatnonzero(in_smaller)

    def _value(self, name: str, basis: Mapping[str, Any], draw: Callable[[], Any]) -> Any:
        """Return what is kept under a name, if it has the same basis; else draw and keep it."""
        if self._entries is None:
            self._entries = self._read()
        entry = self._entries.get(name)
        if entry is None or entry["basis"] != dict(basis):
            entry = {"basis": dict(basis), "value": draw()}
            self._entries[name] = entry
            self._write()
        return entry["value"]

    def _read(self) -> dict[str, Any]:
        """Return all entries in the folder, by name."""
        assert self.folder is not None
        path = self.folder / DRAWN
        if not self._resume or not path.exists():
            return {}
        try:
            description, arrays = read_model_file(path)
            check_keys(path, description, {"class"})
            entries: dict[str, Any] = json.loads(arrays[VALUES].tobytes())
            are_entries = all(entry.keys() == {"basis", "value"} for entry in entries.values())
        except (KeyError, ValueError, AttributeError) as error:
            raise self.error_of_file() from error
        if description["class"] != KIND or not are_entries:
            raise self.error_of_file()
        return entries

    def error_of_file(self) -> CheckpointError:
        """Return an error about the file."""
        path = DRAWN if self.folder is None else self.folder / DRAWN
        return CheckpointError(
            f"{path} does not hold what the training drew: it is damaged, or was edited. Remove "
            "it: the training draws again, and goes on if that comes out the same"
        )

    def _write(self) -> None:
        """Write all entries."""
        if self._keeps and self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            values = np.frombuffer(_encode(self._entries), dtype="uint8")
            write_model_file(self.folder / DRAWN, {"class": KIND}, {VALUES: values})


def digest_of(values: Sequence[Any]) -> str:
    """Return a digest of texts, labels or numbers, in their order."""
    digest = sha256()
    for value in values:
        content = str(value).encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def _encode(entries: Any) -> bytes:
    """Return values as JSON, with Python's numbers in place of NumPy's."""
    return json.dumps(entries, default=methodcaller("tolist")).encode()
