"""What a backward pass takes besides dy: a learning rate, the cache, arguments of forward."""

import inspect
from typing import Any

from npformer.proof.foreign.gradient_names import plain
from npformer.proof.foreign.readings import Reading
from npformer.proof.pairs import OUTPUT_NAMES, name_of

LEARNING_RATES = ("lr", "learningrate", "eta", "alpha", "stepsize", "rate", "learnrate")
"""What the learning rate is called where the backward pass also updates the parameters."""

CACHES = ("cache", "ctx", "context", "saved", "caches", "state", "memory")
"""What the cache is called."""

LEARNING_RATE = 1.0
"""The update is then minus the gradient."""

RATES_OF_LAYERS = ("lr", "learningrate", "learnrate", "eta")
"""What a layer that updates itself may call its own rate. Others, such as alpha, mean more."""


def set_rate_of_layer(layer: Any) -> bool:
    """Set the learning rate that a layer has as an attribute; return whether it has one."""
    for name, value in getattr(layer, "__dict__", {}).items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if plain(name) in RATES_OF_LAYERS and is_number:
            setattr(layer, name, LEARNING_RATE)
            return True
    return False


class NO_EXTRA:
    """In place of a second output of the forward pass. A copy of a class is the class itself."""


class BackwardCall:
    """How the backward pass of an object is called, by its signature."""

    def __init__(self, backward: Any, forward_names: list[str], reading: Reading) -> None:
        self.name = name_of(backward)
        self.takes_output = reading.takes_output
        self.forward_names = {plain(name): name for name in forward_names}
        try:
            parameters = list(inspect.signature(backward).parameters.values())
        except (TypeError, ValueError):
            parameters = [inspect.Parameter("dy", inspect.Parameter.POSITIONAL_ONLY)]
        variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.parameters = [p for p in parameters if p.kind not in variable]
        self.in_order: dict[str, str] = {}  # of parameters that are arguments of the forward pass
        if reading.takes_arguments:
            in_order = zip(self.parameters, forward_names, strict=False)
            self.in_order = {p.name: name for p, name in in_order if _is_required(p)}
        takes_any = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
        self.dy_name = self._find_dy()
        if takes_any and not self.parameters:
            self.dy_name = "dy"

    def _find_dy(self) -> str:
        """Return the parameter that takes dy: the first one that is nothing else; "" if none.

        One with a number as its default, ``dout=1``, is that of a loss. Many ignore what is passed.
        """
        for parameter in self.parameters:
            if self._kind_of(parameter.name) == "":
                has_number = isinstance(parameter.default, (int, float))
                return "" if has_number else parameter.name
        return ""

    def _kind_of(self, name: str) -> str:
        """Return what a parameter takes: "rate", "cache", "argument", "output" or ""."""
        if self.takes_output:
            return "output"
        if name in self.in_order:
            return "argument"
        name = plain(name)
        if name in LEARNING_RATES:
            return "rate"
        if name in CACHES:
            return "cache"
        if name in self.forward_names:
            return "argument"
        return "output" if name in OUTPUT_NAMES else ""

    @property
    def takes_rate(self) -> bool:
        """Whether it updates the parameters itself, with a learning rate."""
        return any(self._kind_of(p.name) == "rate" for p in self.parameters)

    @property
    def takes_cache(self) -> bool:
        """Whether it takes what the forward pass returned beside its output."""
        unknown = [
            p.name
            for p in self.parameters
            if p.name != self.dy_name
            and p.default is inspect.Parameter.empty
            and self._kind_of(p.name) in ("", "cache")
        ]
        return bool(unknown)

    def run(
        self, backward: Any, dy: Any, values: dict[str, Any], y: Any, extra: Any = NO_EXTRA
    ) -> Any:
        """Call it. `values` are the arguments of the forward pass; `extra` is the cache."""
        positional: list[Any] = []
        by_name: dict[str, Any] = {}
        for parameter in self.parameters:
            try:
                value = self._value_of(parameter, dy, values, y, extra)
            except KeyError:
                if parameter.default is not inspect.Parameter.empty:
                    continue
                raise TypeError(
                    f"{self.name} takes {parameter.name!r}; expected backward(dy), with arguments "
                    f"of the forward pass ({', '.join(values)}), its output y, the cache or lr by "
                    "their names. Hand over a pair: gradcheck((forward, backward), x)"
                ) from None
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY or by_name:
                by_name[parameter.name] = value
            else:
                positional.append(value)
                if len(positional) < self.parameters.index(parameter) + 1:  # one was left out
                    positional.pop()
                    by_name[parameter.name] = value
        if not self.parameters and self.dy_name:
            positional.append(dy)
        return backward(*positional, **by_name)

    def _value_of(
        self,
        parameter: inspect.Parameter,
        dy: Any,
        values: dict[str, Any],
        y: Any,
        extra: Any,
    ) -> Any:
        """Return what a parameter takes. Raises KeyError if that is not known."""
        if parameter.name == self.dy_name:
            return dy
        kind = self._kind_of(parameter.name)
        if kind == "rate":
            return LEARNING_RATE
        if kind == "argument":
            name = self.in_order.get(parameter.name)
            return values[name or self.forward_names[plain(parameter.name)]]
        if kind == "output":
            return y
        if extra is NO_EXTRA:
            raise KeyError(parameter.name)
        return extra


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty
