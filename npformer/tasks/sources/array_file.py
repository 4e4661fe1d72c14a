"""Samples that are arrays from the start, in .npy and .csv files."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data import sharded
from npformer.data.text_file import read_text
from npformer.models.trainable import SequenceClassifier


def read_samples(path: Path, model: SequenceClassifier) -> Any:
    """Return the ids or feature vectors of a file as a model takes them."""
    table = path.suffix == ".csv" or str(path) == "-"
    if path.suffix != ".npy" and not table:
        raise ValueError(f"{path} ends in {path.suffix!r}; expected .npy or .csv")
    x = _read_csv(path) if table else read_npy(path)
    features = model.n_features
    if features is None:
        if x.dtype.kind != "f":
            return x
        x = np.asarray(x)
        return x.astype("int64") if (x == np.floor(x)).all() else x  # .csv is read as floats
    if table:
        if x.shape[1] % features:
            raise ValueError(
                f"{path} has {x.shape[1]} numbers a line; expected a multiple of the model's "
                f"{features} features"
            )
        x = x.reshape(len(x), -1, features)
    fits = x.dtype == model.dtype or x.dtype.kind not in "fiu"
    return x if fits else np.asarray(x).astype(model.dtype)


def read_npy(path: Path) -> Any:
    """Return the array of a file, or of several if the name is a pattern, memory-mapped."""
    if not path.exists() and glob.has_magic(str(path)):
        return sharded(str(path))
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(array, np.ndarray):
            return array
    except OSError:
        raise
    except Exception:  # empty, text, Python objects, or whatever NumPy's parser stumbled upon
        pass
    raise ValueError(f"{path} is not an array of numbers in .npy format; write one with numpy.save")


def _read_csv(path: Path) -> np.ndarray:
    lines = read_text(path).rstrip().split("\n")
    gap = next((number for number, line in enumerate(lines, start=1) if not line.strip()), None)
    try:
        if gap is not None:  # if it were skipped, answers would not match lines
            raise ValueError(f"line {gap} is empty")
        return np.loadtxt(lines, delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        raise ValueError(
            f"{path}: {str(error).partition(';')[0].rstrip('.')}; expected one sample per line, "
            "all with equally many comma-separated numbers, no heading"
        ) from error
