"""The judge of twins: does the engine's version of a layer compute what the layer computes?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from npformer.core import Layer

TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
"""The largest difference that passes, relative to the largest entry of a tensor."""

SHARES = {"float64": 1e-2, "float32": 1e-1}
"""Or to so much of the largest gradient of all, if that is more: a gradient that is 0 by nature, as
that of attention's key bias, is rounding alone."""

AS_FAR = 10.0
"""In float32 a twin is wrong only if the plain layer is nearer by this factor. Where both are far
off, the function itself loses the digits."""


@dataclass(frozen=True)
class TwinReport:
    """How far a twin is from its plain layer, which runs in float64.

    Attributes
    ----------
    dtype : {"float64", "float32"}
        In which the twin ran.
    error : float
        The largest relative difference of all tensors; NaN if the twin gave NaN.
    tensor : str
        Where: "y", "x" or a parameter.
    tolerance : float
        Errors up to this one pass.
    of_plain : float
        The same of the plain layer in this dtype: 0 in float64.
    """

    dtype: str
    error: float
    tensor: str
    tolerance: float
    of_plain: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the twin computes what the layer computes."""
        return self.error <= max(self.tolerance, AS_FAR * self.of_plain)


Results = Mapping[str, np.ndarray]
"""y, and the gradient of each tensor by its name."""


def judged(dtype: str, twin: Results, truth: Results, plain: Results | None = None) -> TwinReport:
    """Return how far a twin is from the truth.

    Parameters
    ----------
    dtype : {"float64", "float32"}
    twin : mapping of str to array
    truth : mapping of str to array
        Of the plain layer in float64.
    plain : mapping of str to array, optional
        Of the plain layer in `dtype`, if that is float32.
    """
    error, tensor = _apart(dtype, twin, truth)
    of_plain = 0.0 if plain is None else _apart(dtype, plain, truth)[0]
    return TwinReport(dtype, error, tensor, TOLERANCES[dtype], of_plain)


def _apart(dtype: str, found: Results, truth: Results) -> tuple[float, str]:
    """Return the largest relative difference, and in which tensor."""
    sizes = {name: float(np.abs(x).max(initial=0.0)) for name, x in truth.items()}
    largest = max((size for name, size in sizes.items() if name != "y"), default=0.0)
    worst, where = 0.0, "y"
    for name, x in truth.items():
        if name not in found or found[name].shape != x.shape:
            return float("nan"), name
        share = 0.0 if name == "y" else SHARES[dtype] * largest
        scale = max(sizes[name], share, float(np.finfo(np.float64).tiny))
        apart = np.where(np.isnan(x) & np.isnan(found[name]), 0.0, np.abs(found[name] - x))
        error = float(apart.max(initial=0.0)) / scale
        if not error <= worst:
            worst, where = error, name
    return worst, where


@contextmanager
def in_float32(layer: Layer) -> Iterator[None]:
    """Let all parameters of a layer be float32 for a while."""
    buffers = {id(p._buffer): p._buffer for p in layer.named_parameters().values()}
    kept = {key: buffer.flat for key, buffer in buffers.items()}
    try:
        for buffer in buffers.values():
            buffer.flat = buffer.flat.astype("float32")
        yield
    finally:
        for key, buffer in buffers.items():
            buffer.flat = kept[key]
