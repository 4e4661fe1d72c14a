"""What a page gets of an array: its shape, its figures, and as many entries as one can see."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from npformer.core import to_numpy

MOST = 8, 64, 64
"""Matrices, rows and columns that are sent."""


def pack(array: np.ndarray) -> str:
    """Return the base64 of an array as little-endian float32."""
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def tensor(name: str, array: Any) -> dict[str, Any]:
    """Return an array for the page; the axis of a batch of one is left out."""
    x = np.asarray(to_numpy(array)).real  # of a Fourier matrix, the part that reaches the output
    if x.ndim > 1 and len(x) == 1:
        x = x[0]
    values = x.astype("float64")
    matrices = x.reshape(-1, *x.shape[-2:])[: MOST[0]] if x.ndim > 2 else x
    cut = matrices[..., : MOST[1], : MOST[2]] if x.ndim > 1 else matrices[: MOST[2]]
    return {
        "name": name,
        "shape": list(x.shape),
        "mean": float(values.mean()),
        "spread": float(values.std()),
        "whole": x.dtype.kind in "iu",
        "largest": float(np.abs(values).max(initial=0.0)),
        "data": pack(cut),
        "cut": bool(cut.size < x.size),
    }
