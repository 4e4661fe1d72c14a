"""What an optimizer keeps for each parameter, such as Adam's m and v: saved and put back."""

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
    """Some arrays of each parameter, 0 at first, laid out like it and on its backend.

    Layout and backend may change between steps: parameters are flattened, or moved to a GPU.
    `kinds` names them.
    """

    def __init__(self, parameters: Mapping[str, Array], kinds: tuple[str, ...]) -> None:
        self._parameters, self._kinds = parameters, kinds
        self._arrays: dict[str, tuple[Array, ...]] = {}

    def of(self, place: str, theta: Array) -> tuple[Array, ...]:
        """Return the arrays, one of each kind, for one of the `places`."""
        if place not in self._arrays:
            self.load(self._named(self._arrays) if self._arrays else {})
        arrays = self._arrays[place]
        if arrays and backend_of(x=arrays[0]) is not (owner := backend_of(theta=theta)):
            self._arrays[place] = tuple(asarray(x, owner.name) for x in arrays)
        return self._arrays[place]

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
        """Return host copies, ``"KIND.NAME"`` for each kind and parameter."""
        self._arrays = {place: self.of(place, theta) for place, theta in self.places()}
        host = {
            place: tuple(np.array(to_numpy(x)) for x in arrays)
            for place, arrays in self._arrays.items()
        }
        return self._named(host)  # a buffer comes from a GPU in one copy

    def misfit(self, arrays: Any) -> str:
        """Return why `load` cannot take these arrays; "" if it can."""
        if not isinstance(arrays, Mapping) or {type(x) for x in arrays.values()} - {np.ndarray}:
            return "expected a mapping of names to NumPy arrays"
        wanted = {
            f"{kind}.{name}": x for kind in self._kinds for name, x in self._parameters.items()
        }
        if problem := checks.misfits(arrays, wanted):
            return problem
        for name, x in arrays.items():
            least = 0.0 if name.startswith("v.") else -math.inf
            if not (np.isfinite(x) & (x >= least)).all():
                return f"{name} holds NaN, infinity or a negative square"
        return ""

    def load(self, named: Mapping[str, Array]) -> None:
        """Put back what `save` returned, bit for bit; zeros if `named` is empty."""
        self._arrays.clear()
        for place, theta in self.places():
            zeros = array_module(theta).zeros_like
            self._arrays[place] = tuple(zeros(theta) for _ in self._kinds)
        if named:
            for name, x in self._named(self._arrays).items():
                x[...] = asarray(named[name], backend_of(x=x).name)

    def _named(self, placed: Mapping[str, tuple[Array, ...]]) -> dict[str, Array]:
        """Return the parts of arrays at their places, under the names they are saved with."""
        named: dict[str, Array] = {}
        for place, arrays in placed.items():
            for kind, x in zip(self._kinds, arrays, strict=True):
                named |= {f"{kind}.{name}": part for name, part in self.parts(place, x).items()}
        return named
