"""Gradients: the sums to which a backward pass adds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.core.arrays import array_module
from npformer.core.backend import Array
from npformer.core.parameters import Parameter, Parameters
from npformer.core.support.wording import describe


class Gradients(Mapping[str, Array]):
    """Sums of gradients, one for each trainable parameter of a layer: ``{name: array}``.

    They belong to the caller and are 0 at first. A layer *adds* to the gradient of each parameter,
    so a parameter that is used in two places gets the sum.

    Parameters
    ----------
    layer : Layer or Parameters
    zeros : callable, optional
        ``zeros(size, dtype)`` makes the buffer `flat`, in place of the backend's zeros. All
        gradients are views of it, laid out like the parameters.
    """

    def __init__(self, layer: Any, zeros: Callable[[int, Any], Array] | None = None) -> None:
        self.parameters = _parameters_of(layer)
        self.shapes = self.parameters.shapes
        first = next(iter(self.parameters.values()), np.zeros(0, dtype="float32"))
        make_zeros = array_module(first).zeros if zeros is None else zeros
        self.flat = make_zeros(self.parameters.size, first.dtype)
        self._sums = self.parameters.split(self.flat)

    def copy(self) -> Gradients:
        """Return a copy with a separate buffer, for the same parameters.

        `copy.deepcopy` copies the parameters too. Copied in one call with a model, gradients belong
        to the copy of the model.
        """
        other = copy.copy(self)
        other.flat = self.flat.copy()
        other._sums = self.parameters.split(other.flat)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # Views that were copied or unpickled would not be views any more.
        return {**self.__dict__, "_sums": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._sums = self.parameters.split(self.flat)

    def add(self, parameter: Parameter, gradient: Array) -> None:
        """Add to the gradient of a parameter, which has the same shape; skip a constant."""
        if not parameter.trainable:
            return
        checks.gradient(gradient, parameter.shape, "the gradient", "the parameter")
        total = self.of(parameter)
        total += gradient

    def add_each(self, parameters: Sequence[Parameter | None], gradients: Sequence[Array]) -> None:
        """Add to the gradients of several parameters; None is one that a layer does without."""
        for parameter, gradient in zip(filter(None, parameters), gradients, strict=True):
            self.add(parameter, gradient)

    def of(self, parameter: Parameter) -> Array:
        """Return the sum so far for one parameter, a writable view.

        Raises KeyError if the parameter is a constant or belongs to another layer.
        """
        try:
            return self._sums[parameter]
        except KeyError:
            raise KeyError(
                f"these gradients have no place for a parameter of shape {parameter.shape}: they "
                "were made for another layer. Make them with Gradients(layer), of the layer, or "
                "of the model around it, that you call backward on"
            ) from None

    def parts_in(self, part: slice) -> dict[str, Array]:
        """Return what a part of the buffer holds of each gradient, as vectors."""
        return {name: self.flat[part][at] for name, _, at in self.parameters.overlaps(part)}

    def zero(self) -> None:
        """Set every gradient to 0, in place."""
        self.flat[...] = 0.0

    def __getitem__(self, name: str) -> Array:
        return self._sums[self.parameters.named[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def __repr__(self) -> str:
        return "\n".join(["Gradients:", *(f"  {name}: {shape}" for name, shape in self.shapes)])


def _parameters_of(layer: Any) -> Parameters:
    """Return the trained parameters of a layer; `Parameters` stay as they are."""
    if isinstance(layer, Parameters):
        return layer
    if not hasattr(layer, "trainable"):
        raise TypeError(
            f"layer is {describe(layer)}; expected a Layer, or what its parameters() returns"
        )
    return Parameters(layer.trainable())


def flat_of(named: Mapping[str, Array]) -> Array | None:
    """Return the buffer in which parameters or gradients lie; None for arrays of their own."""
    return named.flat if isinstance(named, Gradients | Parameters) else None
