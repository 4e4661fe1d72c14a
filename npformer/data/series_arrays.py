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
    if unknown := sorted(set(arrays) - {"values", "x", "lengths", "labels"}):
        raise ValueError(f"{path} has an array {unknown[0]!r}; expected {LAYOUTS}, and labels")
    if ("values" in arrays) == ("x" in arrays) or ("values" in arrays and "lengths" not in arrays):
        raise ValueError(f"{path} has {', '.join(arrays) or 'no array'}; expected {LAYOUTS}")
    lengths = arrays.get("lengths")
    if lengths is not None and (lengths.ndim != 1 or lengths.dtype.kind not in "iu"):
        raise ValueError(
            f"{path}: lengths is {lengths.dtype} {lengths.shape}; expected whole numbers, (series,)"
        )
    series = _split(path, arrays, lengths)
    labels = arrays.get("labels")
    if labels is not None and labels.shape != (len(series),):
        raise ValueError(
            f"{path}: labels has shape {labels.shape} and there are {len(series)} series; expected "
            "one label for each"
        )
    return series, None if labels is None else labels.tolist()


def _split(path: Path, arrays: dict[str, np.ndarray], lengths: np.ndarray | None) -> Any:
    name = "values" if "values" in arrays else "x"
    values, axes = arrays[name], 2 if name == "values" else 3
    if values.ndim == axes - 1:
        values = values[..., None]  # one feature
    if values.ndim != axes or values.dtype.kind not in "fiu":
        raise ValueError(
            f"{path}: {name} is {values.dtype} {values.shape}; expected numbers, {LAYOUTS}"
        )
    if name == "values":
        assert lengths is not None
        if (lengths < 1).any() or lengths.sum() != len(values):
            raise ValueError(
                f"{path}: lengths add up to {lengths.sum()}, and values has {len(values)} rows; "
                "expected the same number, and each at least 1"
            )
        return np.split(values, np.cumsum(lengths)[:-1])
    if lengths is None:
        return list(values)
    if len(lengths) != len(values) or not ((lengths >= 1) & (lengths <= values.shape[1])).all():
        raise ValueError(
            f"{path}: lengths must be from 1 to {values.shape[1]}, one for each of the "
            f"{len(values)} series"
        )
    return [each[:n] for each, n in zip(values, lengths, strict=True)]
