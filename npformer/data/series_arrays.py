"""Series of feature vectors from the arrays in a .npz file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.text_file import check_file

LAYOUTS = (
    "values (steps of all series, features) with lengths (series,), or x (series, steps, features)"
)


def read_arrays(path: Path) -> tuple[list[np.ndarray], list[Any] | None]:
    """Return the series of a file, and their labels if it has some."""
    check_file(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # NumPy's reader may raise anything
        raise ValueError(f"{path} is not a .npz file of plain arrays: {error}") from None
    needed = {"values", "lengths"} if "values" in arrays else {"x"}
    if not needed <= arrays.keys() <= needed | {"lengths", "labels"}:
        raise ValueError(
            f"{path} has {', '.join(arrays) or 'no array'}; expected {LAYOUTS}, and perhaps labels"
        )
    name, n_axes = ("values", 2) if "values" in arrays else ("x", 3)
    values = arrays[name]
    lengths = arrays.get("lengths")
    labels = arrays.get("labels")
    if values.ndim == n_axes - 1:
        values = values[..., None]  # one feature
    if values.ndim != n_axes or values.dtype.kind not in "fiu":
        raise ValueError(
            f"{path}: {name} is {values.dtype} {values.shape}; expected numbers, {LAYOUTS}"
        )
    if lengths is None:
        series = list(values)
    else:
        series = _split(path, values, lengths, joined=name == "values")
    if labels is not None and labels.shape != (len(series),):
        raise ValueError(
            f"{path}: labels has shape {labels.shape} and there are {len(series)} series; expected "
            "one label for each"
        )
    return series, None if labels is None else labels.tolist()


def _split(path: Path, values: np.ndarray, lengths: np.ndarray, joined: bool) -> list[np.ndarray]:
    """Return the series; `joined` if all steps are in one array, one series after the other."""
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: lengths is {lengths.dtype} {lengths.shape}; expected whole numbers, (series,)"
        )
    if joined and ((lengths < 1).any() or lengths.sum() != len(values)):
        raise ValueError(
            f"{path}: lengths add up to {lengths.sum()}, and values has {len(values)} rows; "
            "expected the same number, and each at least 1"
        )
    if joined:
        return np.split(values, np.cumsum(lengths)[:-1])
    n_steps = values.shape[1]
    if len(lengths) != len(values) or (lengths < 1).any() or (lengths > n_steps).any():
        raise ValueError(
            f"{path}: lengths must be from 1 to {n_steps}, one for each of the {len(values)} series"
        )
    return [steps[:n] for steps, n in zip(values, lengths, strict=True)]
