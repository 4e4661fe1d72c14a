"""Gradients: the sums that a backward pass adds to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from npformer.core.arrays import NUMPY, array_module
from npformer.core.backend import Array
from npformer.core.parameters import Layout, Parameter


class HasParameters(Protocol):
    """A layer, for what stands below layers."""

    def trainable(self) -> dict[str, Parameter]:
        """Return the parameters that are trained, by name."""


class Gradients(Mapping[str, Array]):
    """Sums of gradients, one for each trainable parameter of a layer: ``{name: array}``.

    They belong to whoever made them. A layer *adds* to them under the parameter's identity, so a
    parameter that is used in two places collects both.

    Parameters
    ----------
    layer : Layer or Layout
        Whose parameters these are the gradients of. All begin at 0.
    zeros : callable, optional
        ``zeros(size, dtype)`` makes the buffer, filled with zeros, instead of the backend.

    Attributes
    ----------
    flat : array, shape (n,)
        All gradients in one buffer, laid out as the parameters are.
    shapes : tuple of (str, tuple of int)
        As in `Parameters`.
    """

    def __init__(
        self, layer: HasParameters | Layout, zeros: Callable[[int, Any], Array] | None = None
    ) -> None:
        layout = layer if isinstance(layer, Layout) else Layout(layer.trainable())
        if layout.named:
            first = next(iter(layout.named.values())).value
            self.flat = (zeros or array_module(first).zeros)(layout.size, first.dtype)
        else:
            self.flat = NUMPY.module.zeros(0, dtype="float32")
        self._named, self._offsets, self.shapes = layout.named, layout.offsets, layout.shapes
        self._look()

    def _look(self) -> None:
        """Make the views into `flat`, by name and by identity."""
        placed = zip(self._named.values(), self._offsets, strict=True)
        views = [self.flat[start : start + p.size].reshape(p.shape) for p, start in placed]
        self._views = dict(zip(self._named, views, strict=True))
        self._by_identity = dict(zip(map(id, self._named.values()), views, strict=True))

    def copy(self) -> Gradients:
        """Return the same sums in a buffer of their own, for the same parameters."""
        twin = copy.copy(self)
        twin.flat = self.flat.copy()
        twin._look()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Gradients:
        return self.copy()  # views copied one by one would no longer be views

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_views": None, "_by_identity": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._look()

    def add(self, parameter: Parameter, gradient: Array) -> None:
        """Add to the gradient of one parameter.

        Parameters
        ----------
        parameter : Parameter
            One of the layer's. A constant is passed over.
        gradient : array
            In the parameter's shape.

        Raises
        ------
        KeyError
            The parameter is not one of this layer's.
        """
        if not parameter.trainable:
            return
        target = self._by_identity.get(id(parameter))
        if target is None:
            target = self.of(parameter)  # says what is wrong
        if gradient.shape != parameter.shape:
            raise ValueError(
                f"a gradient of shape {tuple(gradient.shape)} for a parameter of shape "
                f"{parameter.shape}; expected the same. Nothing is broadcast here"
            )
        target += gradient

    def of(self, parameter: Parameter) -> Array:
        """Return the sum so far for one parameter: a writable view.

        Parameters
        ----------
        parameter : Parameter
            One of the layer's that is trained.

        Raises
        ------
        KeyError
            It is not.
        """
        if id(parameter) not in self._by_identity:
            raise KeyError(
                f"these gradients have no place for a parameter of shape {parameter.shape}: they "
                "were made for another layer. Make them with Gradients(layer), for the layer, or "
                "the model around it, that you call backward on"
            )
        return self._by_identity[id(parameter)]

    def zero(self) -> None:
        """Set every gradient to 0, in place."""
        self.flat[...] = 0.0

    def __getitem__(self, name: str) -> Array:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        lines = [f"  {name}: {view.shape}" for name, view in self._views.items()]
        return "\n".join(["Gradients:", *lines])
