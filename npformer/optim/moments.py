"""Adam's moments m and v: where they lie, and how they are saved and put back."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import Array, Parameters, array_module, asarray, backend_of, checks, to_numpy

FLAT = ""
"""Stands for the flat buffer of all parameters, among their names."""


def places(parameters: Mapping[str, Array]) -> list[tuple[str, Array]]:
    """Return (FLAT, buffer) if parameters lie in one flat buffer, else (name, array) of each."""
    if isinstance(parameters, Parameters) and (flat := parameters.flat) is not None:
        return [(FLAT, flat)]
    return list(parameters.items())


def parts(parameters: Mapping[str, Array], place: str, x: Array) -> dict[str, Array]:
    """Return what an array holds for each parameter, if it is laid out like that place."""
    if place == FLAT and isinstance(parameters, Parameters):
        return parameters.split(x)
    return {place: x}


class Moments:
    """m and v of each parameter, 0 at first, laid out like the parameters and on their backend.

    Both may change while a training pauses: parameters are flattened, or moved to a GPU.
    """

    def __init__(self, parameters: Mapping[str, Array]) -> None:
        self._parameters = parameters
        self._pairs: dict[str, tuple[Array, Array]] = {}

    def of(self, place: str, theta: Array) -> tuple[Array, Array]:
        """Return m and v for one of the `places`."""
        if place not in self._pairs:
            self._lay_out(self._named())
        m, v = self._pairs[place]
        if backend_of(m=m) is not (owner := backend_of(theta=theta)):
            self._pairs[place] = asarray(m, owner.name), asarray(v, owner.name)
        return self._pairs[place]

    def save(self) -> dict[str, np.ndarray]:
        """Return host copies: ``"m.NAME"`` and ``"v.NAME"`` for each parameter."""
        found: dict[str, np.ndarray] = {}
        for place, theta in places(self._parameters):
            for kind, x in zip("mv", self.of(place, theta), strict=True):
                if (whole := self._whole(x)) is not None:
                    on_host = parts(self._parameters, place, whole)
                    found.update({f"{kind}.{name}": part for name, part in on_host.items()})
        return found

    def _whole(self, x: Array) -> np.ndarray | None:
        """Return m or v of a place as a copy on the host; None where another rank has that."""
        return np.array(to_numpy(x))

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

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put back what `save` returned, bit for bit."""
        self._lay_out({n: (arrays[f"m.{n}"], arrays[f"v.{n}"]) for n in self._parameters})

    def _named(self) -> dict[str, tuple[Array, Array]]:
        named: dict[str, tuple[Array, Array]] = {}
        for place, pair in self._pairs.items():
            m, v = (parts(self._parameters, place, x) for x in pair)
            named.update({name: (m[name], v[name]) for name in m})
        return named

    def _lay_out(self, named: Mapping[str, tuple[Array, Array]]) -> None:
        self._pairs.clear()
        for place, theta in places(self._parameters):
            if not named:
                zeros = array_module(theta).zeros_like
                m, v = zeros(theta), zeros(theta)
            elif place == FLAT and isinstance(self._parameters, Parameters):
                m, v = (
                    self._parameters.gather({name: pair[i] for name, pair in named.items()})
                    for i in range(2)
                )
            else:
                m, v = (x.copy() for x in named[place])
            self._pairs[place] = m, v
