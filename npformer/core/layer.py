"""Layer: it owns parameters, but never activations.

The forward pass returns what the backward pass needs as a cache, and the backward pass adds to
gradients that belong to the caller. So a layer can be applied twice, shared between places and used
in several threads at once::

    y, cache = layer.forward(x, context)
    dx = layer.backward(dy, cache, gradients)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from npformer.core import checks
from npformer.core.arrays import asarray, backend_of, get_backend
from npformer.core.attachment import Attachable, attachment
from npformer.core.backend import Array
from npformer.core.context import Context
from npformer.core.gradients import Gradients
from npformer.core.name_patterns import match_names
from npformer.core.padding import check_padding
from npformer.core.parameters import FlatBuffer, Parameter, Parameters
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.core.support.wording import missing_method_error


@drop_class_from_names
class Layer(Attachable):
    """A function with parameters.

    A subclass defines `forward` and `backward`, and sets parameters and other layers as attributes,
    in the order in which they act. The name of a parameter is the path of attributes that leads to
    it, such as ``blocks.0.mixer.query.weight``.
    """

    n_inputs = 1
    """How many arrays `forward` takes before the context. `TwoInputLayer` has 2."""

    __slots__ = ("__dict__", "__weakref__")

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        """Return the result and what `backward` needs."""
        raise missing_method_error(self, "forward(self, x, context)")

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        """Add the gradients of the parameters to `gradients` and return dx.

        dy and dx are the gradients of the loss with respect to y and x. dx is None if x has no
        gradient, like token ids, or if y does not depend on x.
        """
        raise missing_method_error(self, "backward(self, dy, cache, gradients)")

    def __call__(self, x: Array, mask: Array | None = None) -> Array:
        """Return the result at evaluation. In `mask`, shape (batch, length), True = keep."""
        backend_of(x=x) if mask is None else check_padding(mask, x)
        return self.forward(x, Context(mask=mask, keep=False))[0]

    # Names ------------------------------------------------------------------------------------

    def children(self) -> Iterator[tuple[str, Parameter | Layer]]:
        """Yield the parameters and layers among the attributes, in the order they were set."""
        for name, attribute in list(vars(self).items()):  # another thread may set one meanwhile
            if isinstance(attribute, (Parameter, Layer)):
                yield name, attribute
            elif isinstance(attribute, (list, tuple)):
                yield from children_in_list(name, attribute)

    def layers(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """Yield this layer and all inside it with their dotted names; shared ones each time."""
        yield prefix, self
        for name, child in self.children():
            if isinstance(child, Layer):
                yield from child.layers(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self) -> dict[str, Parameter]:
        """Return each parameter once, under its dotted name, or the first one if it is shared."""
        names: dict[Parameter, str] = {}
        self._name_parameters(prefix="", names=names)
        return {name: parameter for parameter, name in names.items()}

    def _name_parameters(self, prefix: str, names: dict[Parameter, str]) -> None:
        """Add the first dotted name of each parameter: this layer's, then those of layers in it."""
        inner_layers = []
        for name, child in self.children():
            if isinstance(child, Parameter):
                names.setdefault(child, f"{prefix}{name}")
            else:
                inner_layers.append((name, child))
        for name, layer in inner_layers:
            layer._name_parameters(prefix=f"{prefix}{name}.", names=names)

    def trainable(self) -> dict[str, Parameter]:
        """Return the parameters that are trained, under their dotted names."""
        return select_trainable(self.named_parameters())

    def parameters(self) -> Parameters:
        """Return ``{name: array}`` of what is trained, as writable views."""
        return Parameters(self.trainable())

    def n_parameters(self) -> int:
        """Return how many numbers are trained."""
        return sum(parameter.size for parameter in self.trainable().values())

    def freeze(self, *patterns: str) -> Self:
        """Take parameters out of training, and return the layer.

        They keep their values and have no gradients; `unfreeze` takes them back. Make the optimizer
        afterwards: ``model.parameters()`` no longer holds them. A saved model remembers it.

        Parameters
        ----------
        *patterns : str
            Patterns of dotted names, as in `fnmatch`: "embed.*", "encoder.blocks.0.*". One that
            matches no name raises ValueError.

        Examples
        --------
        >>> model.freeze("*").unfreeze("classify.*")     # train the head alone
        """
        return self._set_trainable(patterns, self.named_parameters(), trainable=False)

    def unfreeze(self, *patterns: str) -> Self:
        """Undo `freeze`; constants, such as a table of sinusoids, stay constant."""
        parameters = self.named_parameters().items()
        not_constant = {name: parameter for name, parameter in parameters if not parameter.constant}
        return self._set_trainable(patterns, not_constant, trainable=True)

    def _set_trainable(
        self, patterns: tuple[str, ...], named: dict[str, Parameter], trainable: bool
    ) -> Self:
        names = match_names(patterns, named, "parameters")
        self._check_whole("freeze", "model.freeze('encoder.*')")
        for name in names:
            named[name].trainable = trainable
        return self.flatten()

    def frozen(self) -> dict[str, Parameter]:
        """Return the parameters that `freeze` took out of training."""
        return frozen(self.named_parameters())

    # Memory -----------------------------------------------------------------------------------

    def flatten(self) -> Self:
        """Make all trained parameters views of one flat buffer, and return the layer.

        The optimizer then needs one update, workers one sum, and `to` one copy. The outermost layer
        calls this at the end of its ``__init__``. All parameters must have the same dtype. Frozen
        ones get a buffer of their own.
        """
        named = self.named_parameters()
        for parameters in (Parameters(select_trainable(named)), Parameters(frozen(named))):
            if not parameters:
                continue
            checks.floating(**parameters)
            buffer = FlatBuffer(parameters.gather(parameters))
            for name, offset in zip(parameters, parameters.offsets, strict=True):
                parameters.named[name]._place(buffer, offset)
        return self

    def to(self, backend: str) -> Self:
        """Move all parameters to a backend, such as "cupy" or "numpy", and return the layer.

        BackendUnavailableError says whether a GPU, a driver or CuPy is missing. A part of a model
        is refused with ValueError: it shares a flat buffer, which only moves as a whole.
        """
        get_backend(backend)
        cache = attachment(self)
        if cache is not None:
            cache.release()  # it may refer to layers that were taken out of this one
        for buffer in self._check_whole("move", f"model.to({backend!r})"):
            buffer.replace(asarray(buffer.flat, backend))
        return self

    def _check_whole(self, do: str, call: str) -> list[FlatBuffer]:
        """Return the buffers of all parameters, which must not hold those of other layers too."""
        ours = set(self.named_parameters().values())
        buffers = {id(parameter._buffer): parameter._buffer for parameter in ours}
        for buffer in buffers.values():
            if not ours.issuperset(buffer.members):
                raise ValueError(
                    f"this {type(self).__name__} is part of a model and shares one buffer with "
                    f"the rest of it; {do} the whole model: {call}. If it is the "
                    "model, and you have kept a layer that you took out of it, call flatten() first"
                )
        return list(buffers.values())

    @property
    def backend(self) -> str:
        """Name of the backend of the parameters; ``"numpy"`` if there are none."""
        first = self._any_parameter()
        return "numpy" if first is None else backend_of(parameter=first._buffer.flat).name

    @property
    def dtype(self) -> str:
        """Name of the parameters' dtype; ``"float32"`` if there are none."""
        first = self._any_parameter()
        return "float32" if first is None else str(first.dtype.name)

    def _any_parameter(self) -> Parameter | None:
        for _, child in self.children():
            parameter = child if isinstance(child, Parameter) else child._any_parameter()
            if parameter is not None:
                return parameter
        return None

    def __repr__(self) -> str:
        settings = []
        for name, value in vars(self).items():
            if not name.startswith("_") and isinstance(value, int | float | str):
                settings.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(settings)})"


def children_in_list(name: str, items: Sequence[Any]) -> Iterator[tuple[str, Parameter | Layer]]:
    """Yield the parameters and layers in a list, whose names are that of the list and a number."""
    for i, item in enumerate(items):
        if isinstance(item, (Parameter, Layer)):
            yield f"{name}.{i}", item


def select_trainable(named: dict[str, Parameter]) -> dict[str, Parameter]:
    """Return those parameters that are trained."""
    return {name: parameter for name, parameter in named.items() if parameter.trainable}


def frozen(named: dict[str, Parameter]) -> dict[str, Parameter]:
    """Return those parameters that `Layer.freeze` took out of training."""
    return {
        name: parameter
        for name, parameter in named.items()
        if not (parameter.trainable or parameter.constant)
    }
