"""What gradcheck checks, as it sees it: a function of named arrays, and its gradients.

A layer becomes one here, a pair of functions in `pairs`, other people's objects in `foreign`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from npformer.core import Context, Gradients, Layer, describe
from npformer.core.inputs import names_of
from npformer.proof.returned import name_gradients

Convert = Callable[[np.ndarray], np.ndarray]


class ConvertArrays(Protocol):
    """Of a problem: the same on copies of its arrays."""

    def __call__(
        self, convert: Convert, other_ids: bool = False
    ) -> AbstractContextManager["Problem"]:
        """Convert floats by `convert`; if `other_ids`, exchange whole numbers for others."""


@dataclass
class Problem:
    """A function of named arrays, and its gradients."""

    title: str
    forward: Callable[[], tuple[Any, Any]]  # reads the current values of the arrays
    # (dy, cache) -> gradients by name; a third argument is what a layer's sums start from
    backward: Callable[..., dict[str, Any]]
    arrays: dict[str, np.ndarray]  # checked; gradcheck changes them in place
    inputs: list[str]  # which of these arrays are inputs rather than parameters
    constants: list[np.ndarray]  # other arrays, which no pass may change either
    convert_arrays: ConvertArrays
    unit_dy: bool = False  # the backward pass takes no dy: it is that of y itself

    def __post_init__(self) -> None:
        self._watched = [*self.arrays.values(), *self.constants]
        self.originals = [x.copy() for x in self._watched]

    def convert_to_float32(self) -> AbstractContextManager["Problem"]:
        """The same on copies in float32."""
        return self.convert_arrays(lambda x: x.astype("float32"))

    def has_original_values(self) -> bool:
        """Whether all arrays have their original values."""
        pairs = zip(self._watched, self.originals, strict=True)
        return all(np.array_equal(x, original, equal_nan=True) for x, original in pairs)

    @contextmanager
    def at(self, values: Mapping[str, np.ndarray]) -> Iterator[None]:
        """Give checked arrays other values, by name, inside a `with` block."""
        originals = dict(zip(self.arrays, self.originals, strict=False))
        try:
            for name, value in values.items():
                self.arrays[name][...] = value
            yield
        finally:
            for name in values:
                self.arrays[name][...] = originals[name]

    def moved(self, step: Callable[[np.ndarray], np.ndarray]) -> AbstractContextManager[None]:
        """Add a step to each checked array inside a `with` block."""
        pairs = zip(self.arrays.items(), self.originals, strict=False)
        return self.at({name: x + step(original) for (name, x), original in pairs})


def layer_problem(
    layer: Layer,
    inputs: tuple[Any, ...],
    new_context: Callable[[], Context],
    twin: Layer | None = None,
    convert: Convert | None = None,
    other_ids: bool = False,
) -> Problem:
    """Return a layer, or its twin, as a function of its inputs and parameters.

    The inputs are copied by `convert`; None: they and the parameters must be float64. `other_ids`
    exchanges whole numbers for others.
    """
    names, parameters = names_of(inputs), layer.parameters()
    # A parameter may also be called x.
    names = tuple(f"input {name}" if name in parameters else name for name in names)
    copies, floats = copy_arrays(zip(names, map(np.array, inputs), strict=True), convert, other_ids)
    runs: Any = layer if twin is None else twin
    for name, value in parameters.items() if convert is None else ():
        _require_float64(name, value, type(layer).__name__)

    def forward() -> tuple[Any, Any]:
        result = runs.forward(*copies.values(), new_context())
        if not is_output_with_cache(result):
            raise TypeError(
                f"the forward pass of {type(runs).__name__} returned {describe(result)}; expected "
                "(y, cache). The cache is what backward needs, None if that is nothing"
            )
        return one_output(*result)

    def backward(dy: Any, cache: Any, start: float = 0.0) -> dict[str, Any]:
        gradients = Gradients(layer)
        gradients.flat[...] = start
        cache, split = cache
        returned = runs.backward(split(dy), cache, gradients)
        of_inputs = name_gradients(
            returned if len(names) > 1 else (returned,),
            names,
            f"the backward pass of {type(runs).__name__}",
            "Return None for an input that has no gradient, such as token ids",
        )
        gradients.flat[...] -= start
        return {name: of_inputs[name] for name in floats} | dict(gradients)

    arrays = {name: copies[name] for name in floats} | dict(parameters)
    constants = [x for name, x in copies.items() if name not in floats]
    context = new_context()
    of_tokens = (context.mask, context.types, context.memory_mask, context.memory_types)
    constants += [x for x in of_tokens if x is not None]

    @contextmanager
    def convert_arrays(convert: Convert, other_ids: bool = False) -> Iterator[Problem]:
        with parameters_as(layer, convert):
            yield layer_problem(layer, inputs, new_context, twin, convert, other_ids)

    return Problem(
        title=type(layer).__name__,
        forward=forward,
        backward=backward,
        arrays=arrays,
        inputs=floats,
        constants=constants,
        convert_arrays=convert_arrays,
    )


def copy_arrays(
    values: Iterable[tuple[str, Any]], convert: Convert | None, other_ids: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return values with arrays copied, floats by `convert`, and the names of the latter."""
    copies = {name: np.array(x) if isinstance(x, np.ndarray) else x for name, x in values}
    floats = [name for name, x in copies.items() if is_array_of_floats(x)]
    for name in floats:  # gradcheck changes them in place
        _require_float64(name, copies[name])
        copies[name] = (convert or np.array)(copies[name])
    if other_ids:
        copies = {name: move_ids(x) for name, x in copies.items()}
    return copies, floats


def move_ids(x: Any) -> Any:
    """Return whole numbers moved on by one place, so that all of them stay valid ids."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "iu":
        return np.roll(x.reshape(-1), 1).reshape(x.shape)
    return x


def _require_float64(name: str, x: np.ndarray, layer: str = "") -> None:
    if x.dtype != np.float64:
        convert = f"Write {name}.astype('float64')"
        advice = f"Build the {layer} with dtype='float64'" if layer else convert
        raise TypeError(
            f"{name} has dtype {x.dtype}; expected float64, because differences in float32 hide "
            f"errors of one per cent. {advice}"
        )


def is_array_of_floats(x: Any) -> bool:
    """Whether a value is one of NumPy's arrays, of real numbers in floating point."""
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def is_ids_or_mask(x: Any) -> bool:
    """Whether a value is an array that is passed on: of whole numbers, or of booleans."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "iub"


def is_output_with_cache(result: Any) -> bool:
    """Whether a forward pass returned (y, cache)."""
    return isinstance(result, tuple) and len(result) == 2


def one_output(y: Any, cache: Any) -> tuple[Any, tuple[Any, Callable[[Any], Any]]]:
    """Concatenate the outputs if there are several, and add to the cache how to split dy."""
    if not isinstance(y, tuple):
        return y, (cache, lambda dy: dy)
    outputs = [None if output is None else np.asanyarray(output) for output in y]
    present = [output for output in outputs if output is not None]
    ends = np.cumsum([output.size for output in present])

    def split(dy: Any) -> tuple[Any, ...]:
        flat_gradients = iter(np.split(dy, ends[:-1]))
        return tuple(
            None if output is None else next(flat_gradients).reshape(output.shape)
            for output in outputs
        )

    return np.concatenate([output.reshape(-1) for output in present]), (cache, split)


@contextmanager
def parameters_as(layer: Layer, convert: Callable[[np.ndarray], np.ndarray]) -> Iterator[None]:
    """Replace a layer's parameters with converted copies inside a `with` block."""
    buffers = {id(p._buffer): p._buffer for p in layer.named_parameters().values()}
    saved = [(buffer, buffer.flat) for buffer in buffers.values()]
    try:
        for buffer, flat in saved:
            buffer.replace(convert(flat))
        yield
    finally:
        for buffer, flat in saved:
            buffer.replace(flat)
