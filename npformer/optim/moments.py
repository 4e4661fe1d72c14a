"""Adam's moments m and v: where they lie, and how they are saved and put back."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import (
    Array,
    Gradients,
    Parameters,
    array_module,
    asarray,
    backend_of,
    checks,
    to_numpy,
)

FLAT = ""
"""The name that stands for the flat buffer of all parameters."""


def flat_of(named: Mapping[str, Array]) -> Array | None:
    """Return the buffer in which parameters or gradients lie; None for arrays of their own."""
    return named.flat if isinstance(named, Gradients | Parameters) else None


class Moments:
    """m and v of each parameter, 0 at first, laid out like the parameters and on their backend.

    Layout and backend may change between steps: parameters are flattened, or moved to a GPU.
    """

    def __init__(self, parameters: Mapping[str, Array]) -> None:
        self._parameters = parameters
        self._pairs: dict[str, tuple[Array, Array]] = {}

    def of(self, place: str, theta: Array) -> tuple[Array, Array]:
        """Return m and v for one of the `places`."""
        if place not in self._pairs:
            self.load(self._named(self._pairs))
        m, v = self._pairs[place]
        if backend_of(m=m) is not (owner := backend_of(theta=theta)):
            self._pairs[place] = asarray(m, owner.name), asarray(v, owner.name)
        return self._pairs[place]

    def places(self) -> list[tuple[str, Array]]:
        """Return (FLAT, buffer) if parameters lie in one buffer, else (name, array) of each."""
        flat = flat_of(self._parameters)
        return list(self._parameters.items()) if flat is None else [(FLAT, flat)]

    def parts(self, place: str, x: Array) -> dict[str, Array]:
        """Return what an array holds for each parameter, if it is laid out like that place."""
        if place == FLAT and isinstance(self._parameters, Parameters):
            return self._parameters.split(x)
        return {place: x}

    def save(self) -> dict[str, np.ndarray]:
        """Return host copies: ``"m.NAME"`` and ``"v.NAME"`` for each parameter."""
        self._pairs = {place: self.of(place, theta) for place, theta in self.places()}
        host = {
            p: (np.array(to_numpy(m)), np.array(to_numpy(v))) for p, (m, v) in self._pairs.items()
        }
        return self._named(host)  # a buffer comes from a GPU in one copy

    def misfit(self, arrays: Any) -> str:
        """Return why `load` cannot take these arrays; "" if it can."""
        if not isinstance(arrays, Mapping) or {type(x) for x in arrays.values()} - {np.ndarray}:
            return "expected a mapping of names to NumPy arrays"
        wanted = {f"{kind}.{name}": x for kind in "mv" for name, x in self._parameters.items()}
        if problem := checks.misfits(arrays, wanted):
            return problem
        for name, x in arrays.items():
            least = 0.0 if name.startswith("v.") else -math.inf
            if not (np.isfinite(x) & (x >= least)).all():
                return f"{name} holds NaN, infinity or a negative square"
        return ""

    def load(self, named: Mapping[str, Array]) -> None:
        """Put back what `save` returned, bit for bit; zeros if `named` is empty."""
        self._pairs.clear()
        for place, theta in self.places():
            zeros = array_module(theta).zeros_like
            self._pairs[place] = zeros(theta), zeros(theta)
        if named:
            for name, x in self._named(self._pairs).items():
                x[...] = asarray(named[name], backend_of(x=x).name)

    def _named(self, pairs: Mapping[str, tuple[Array, Array]]) -> dict[str, Array]:
        """Return the parts of arrays at their places, under the names they are saved with."""
        named: dict[str, Array] = {}
        for place, pair in pairs.items():
            for kind, x in zip("mv", pair, strict=True):
                named |= {f"{kind}.{name}": part for name, part in self.parts(place, x).items()}
        return named
