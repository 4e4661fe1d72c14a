"""predict_to_file: predictions for more samples than fit into memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import a_type, checks, to_numpy
from npformer.core.inputs import user_arrays
from npformer.core.support.explained_errors import add_place_to_errors
from npformer.data.samples import arrays_of_inputs, check_unlabelled_inputs, read_inputs
from npformer.data.stored import files_of
from npformer.data.stored_samples import location_of, rows_at_once
from npformer.models.losses import Classification
from npformer.models.trainable.model import Model
from npformer.training.distributed import Communicator, communicator_of
from npformer.training.storage.files import name_in_errors, replacement
from npformer.training.storage.outputs import check_not_read, check_place


def predict_to_file(
    path: str | os.PathLike[str],
    model: Model,
    x: Any,
    mask: Any = None,
    types: Any = None,
    *,
    kind: str = "probabilities",
    batch_size: int = 256,
    communicator: Any = None,
    overwrite: bool = False,
) -> np.memmap:
    """Write a model's predictions into a .npy file, in the order of the samples.

    Samples are read, and predictions written, a few at a time, so neither has to fit into memory.
    The file is either complete or not there.

    Parameters
    ----------
    path : str or path
        Of the file, which ends in ".npy".
    model : Model
        Such as a SequenceClassifier.
    x, mask, types : array
        As in `Model.__call__`, on the host or in files: memory-mapped, or made by
        `npformer.data.sharded`. Mask and types may be None. For two inputs, tuples of them.
    kind : {"probabilities", "labels", "outputs"}
        What is written: the probability of each class, (n, n_classes); the most probable class,
        (n,); or what the model returns. If tokens have answers, the shape is
        (n, length, n_classes), or (n, length).
    batch_size : int
        As in `Model.predict_probabilities`.
    communicator : Communicator or mpi4py.MPI.Comm, optional
        The ranks that share the samples, as in `fit`. All have to see the same folder.
    overwrite : bool
        Whether to replace an existing file.

    Returns
    -------
    numpy.memmap
        The file, opened to read.

    Raises
    ------
    ValueError
        There is no sample, or with ``kind="labels"`` the probabilities of one are NaN.
    OSError
        The file cannot be written.
    """
    with communicator_of(communicator).guard() as ranks:
        checks.instance("model", model, Model, "SequenceClassifier is one")
        path = checks.path("path", path)
        predictors: dict[str, Callable[..., np.ndarray]] = {
            "probabilities": model.predict_probabilities,
            "labels": model.predict,
            "outputs": partial(model.predict_in_batches, to_numpy),
        }
        checks.choice("kind", kind, predictors)
        if path.suffix != ".npy":
            raise ValueError(f"path is {str(path)!r}; expected a name that ends in '.npy'")
        checks.flag("overwrite", overwrite)
        check_place(path, "predictions.npy", overwrite=overwrite, regular=True)
        if kind == "labels" and not isinstance(model.loss, Classification):
            raise TypeError(
                f"kind is 'labels' and {a_type(model.loss)} has no classes; expected 'outputs'"
            )
        inputs = check_unlabelled_inputs(model, "x", x, mask, types)
        check_not_read("path", path, files_of(arrays_of_inputs(inputs)))

        def predict_rows(rows: slice) -> np.ndarray:
            x_of_rows, mask_of_rows, types_of_rows = user_arrays(read_inputs(inputs, rows))
            with add_place_to_errors(location_of(rows)):
                return predictors[kind](x_of_rows, mask_of_rows, batch_size, types_of_rows)

        _write(path, len(inputs[0].x), rows_at_once(model, inputs), predict_rows, ranks, overwrite)
        predictions: np.memmap = np.load(path, mmap_mode="r")
        return predictions


def _write(
    path: Path, n: int, at_once: int, predict_rows: Any, ranks: Communicator, overwrite: bool
) -> None:
    """Write predictions into a file; each rank writes its shard of the rows."""
    row = predict_rows(slice(0, 1))  # for shape and dtype
    for rank, layout, first in ranks.unlike_first((n, at_once, row.shape, row.dtype.str)):
        raise ValueError(
            f"rank {rank} predicts {layout[0]} samples as {layout[2:]}, and rank 0 "
            f"{first[0]} as {first[2:]}; expected the same model and data on all ranks"
        )
    with ExitStack() as stack:
        location = "", 0  # rank 0 decides
        if ranks.rank == 0:
            file = stack.enter_context(replacement(path, overwrite=overwrite))
            header = {"descr": row.dtype.str, "fortran_order": False, "shape": (n, *row.shape[1:])}
            np.lib.format.write_array_header_2_0(file, header)
            file.flush()
            location = file.name, file.tell()
        name, begin = ranks.first(location)
        shard = ranks.shard(n)
        with Path(name).open("r+b") as shared:
            shared.seek(begin + shard.start * row.nbytes)
            for start in range(shard.start, shard.stop, at_once):
                predictions = predict_rows(slice(start, min(start + at_once, shard.stop)))
                with name_in_errors(path):
                    shared.write(np.ascontiguousarray(predictions).data)
            with name_in_errors(path):
                shared.flush()
                os.fsync(shared.fileno())
        ranks.agree(0.0)  # all have written; rank 0 then renames the file
    ranks.agree(0.0)
