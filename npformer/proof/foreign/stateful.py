"""An object with state, such as a layer that keeps its input for its backward pass."""

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.proof.foreign.arrays_inside import all_paths, convert_to_float64
from npformer.proof.foreign.backward_arguments import NO_EXTRA, BackwardCall, set_rate_of_layer
from npformer.proof.foreign.pass_names import OUTPUT_ATTRIBUTES
from npformer.proof.foreign.readings import Reading
from npformer.proof.foreign.repeatable import repeatable_draws
from npformer.proof.pairs import Call, copy_generators


@dataclass
class ForwardRun:
    """A forward pass: the object after it, its arguments, its output and what came beside it."""

    instance: Any
    values: dict[str, Any]
    y: Any
    extra: Any


@dataclass
class BackwardRun:
    """A backward pass: the object after it, its arrays before it, and what it returned."""

    instance: Any
    before: dict[str, np.ndarray]
    returned: Any
    numbers_before: dict[str, np.ndarray] = field(default_factory=dict)  # only of the first run


@dataclass
class StatefulObject:
    """An object with a forward and a backward pass, and the arguments of its forward pass."""

    obj: Any
    reading: Reading
    inputs: tuple[Any, ...]
    options: dict[str, Any]
    seed: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.forward_name = self.reading.forward_name
        self.backward_name = self.reading.backward_name
        self.title = getattr(self.obj, "title", type(self.obj).__name__)
        self.notes += filter(None, [self.reading.note])
        self.base = copy_object(self.obj)
        converted = convert_to_float64(self.base)
        if converted:
            self.notes.append(f"checked on a copy with {', '.join(converted)} in float64")
        self.has_rate = set_rate_of_layer(self.base)
        self.call = Call(getattr(self.base, self.forward_name), self.inputs, self.options)
        backward = getattr(self.base, self.backward_name)
        self.backward_call = BackwardCall(backward, list(self.call.values), self.reading)

    def forward(self, instance: Any, values: dict[str, Any]) -> ForwardRun:
        """Run the forward pass of this very instance."""
        function = getattr(instance, self.forward_name)
        with repeatable_draws(self.seed):
            result = self.call.run(copy_generators(values), function)
        y, extra = self._split(instance, result)
        if self.reading.of_mean:
            y = np.mean(y)
        return ForwardRun(instance, values, y, extra)

    def _split(self, instance: Any, result: Any) -> tuple[Any, Any]:
        """Return the output, and what else the forward pass returned."""
        if result is None:
            return self._output_attribute(instance), NO_EXTRA
        if not isinstance(result, tuple):
            return result, NO_EXTRA
        y, *others = result
        if not self.backward_call.takes_cache:
            note = f"only the first of the {len(result)} outputs of {self.forward_name} was checked"
            if note not in self.notes:
                self.notes.append(note)
        extra = others[0] if len(others) == 1 else tuple(others)
        return y, extra

    def _output_attribute(self, instance: Any) -> Any:
        for name in OUTPUT_ATTRIBUTES:
            if hasattr(instance, name):
                return getattr(instance, name)
        raise TypeError(
            f"{self.title}.{self.forward_name} returned None; expected its output, as what it "
            f"returns or in an attribute called {', '.join(OUTPUT_ATTRIBUTES)}"
        )

    def backward(self, run: ForwardRun, dy: Any) -> BackwardRun:
        """Run the backward pass of the very instance that ran the forward pass."""
        before = {path: array.copy() for path, array in all_paths(run.instance).items()}
        function = getattr(run.instance, self.backward_name)
        values = dict(run.values)
        if self.reading.takes_kept_output:
            values[next(iter(values))] = self._output_attribute(run.instance)
        with repeatable_draws(self.seed + 1):
            returned = self.backward_call.run(function, dy, values, run.y, run.extra)
        if isinstance(returned, np.ndarray) and returned.dtype.kind in "biu":  # such as x > 0
            returned = returned.astype(np.float64)
        return BackwardRun(run.instance, before, returned)


def copy_object(obj: Any) -> Any:
    """Return a copy of an object and of all that it holds."""
    try:
        return copy.deepcopy(obj)
    except Exception as error:
        raise TypeError(
            f"{type(obj).__name__} cannot be copied ({type(error).__name__}: {error}); gradcheck "
            "runs each pass on a copy. Hand over a pair: gradcheck((forward, backward), x)"
        ) from error
