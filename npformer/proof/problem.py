"""A layer or a pair of functions, as gradcheck sees it: a function of named arrays."""

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import Context, Gradients, Layer, describe
from npformer.core.inputs import names_of

Convert = Callable[[np.ndarray], np.ndarray]


@dataclass
class Problem:
    """A function of named arrays, and its gradients."""

    title: str
    forward: Callable[[], tuple[Any, Any]]  # reads the current values of the arrays
    # (dy, cache) -> gradients by name; a third argument is what a layer's sums start from
    backward: Callable[..., dict[str, Any]]
    arrays: dict[str, np.ndarray]  # checked; gradcheck changes them in place
    constants: list[np.ndarray]  # other arrays, which no pass may change either
    convert_arrays: Callable[[Convert], AbstractContextManager["Problem"]]  # on converted copies

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
    def moved(self, step: Callable[[np.ndarray], np.ndarray]) -> Iterator[None]:
        """Add a step to each checked array inside a `with` block."""
        pairs = list(zip(self.arrays.values(), self.originals, strict=False))
        try:
            for x, original in pairs:
                x += step(original)
            yield
        finally:
            for x, original in pairs:
                x[...] = original


def layer_problem(
    layer: Layer,
    inputs: tuple[Any, ...],
    new_context: Callable[[], Context],
    twin: Layer | None = None,
    convert: Convert | None = None,
) -> Problem:
    """Return a layer, or its twin, as a function of its inputs and parameters.

    The inputs are copied by `convert`; None: they and the parameters must be float64.
    """
    names, parameters = names_of(inputs), layer.parameters()
    # A parameter may also be called x.
    names = tuple(f"input {name}" if name in parameters else name for name in names)
    copies, floats = _copy_arrays(zip(names, map(np.array, inputs), strict=True), convert)
    runs: Any = layer if twin is None else twin
    for name, value in parameters.items() if convert is None else ():
        _require_float64(name, value, type(layer).__name__)

    def forward() -> tuple[Any, Any]:
        return one_output(*runs.forward(*copies.values(), new_context()))

    def backward(dy: Any, cache: Any, start: float = 0.0) -> dict[str, Any]:
        gradients = Gradients(layer)
        gradients.flat[...] = start
        cache, split = cache
        returned = runs.backward(split(dy), cache, gradients)
        of_inputs = _name_gradients(
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
    def convert_arrays(convert: Convert) -> Iterator[Problem]:
        with parameters_as(layer, convert):
            yield layer_problem(layer, inputs, new_context, twin, convert)

    return Problem(type(layer).__name__, forward, backward, arrays, constants, convert_arrays)


def _copy_arrays(
    values: Iterable[tuple[str, Any]], convert: Convert | None
) -> tuple[dict[str, Any], list[str]]:
    """Return values with arrays copied, floats by `convert`, and the names of the latter."""
    copies = {name: np.array(x) if isinstance(x, np.ndarray) else x for name, x in values}
    floats = [n for n, x in copies.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    for name in floats:  # gradcheck changes them in place
        _require_float64(name, copies[name])
        copies[name] = (convert or np.array)(copies[name])
    return copies, floats


def _name_gradients(gradients: Any, names: Sequence[str], who: str, advice: str) -> dict[str, Any]:
    """Return what a backward pass returned, by the names of what it differentiates."""
    if not isinstance(gradients, tuple) or len(gradients) != len(names):
        is_tuple = isinstance(gradients, tuple)
        what = f"a tuple of {len(gradients)}" if is_tuple else describe(gradients)
        expected = ", ".join(f"d{name}" for name in names)
        raise TypeError(f"{who} returned {what}; expected ({expected}), in this order. {advice}")
    return dict(zip(names, gradients, strict=True))


def pair_problem(
    target: Any,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    wrt: Sequence[str] | None,
    convert: Convert | None = None,
) -> Problem:
    """Return a pair of functions as a function of the arguments that `wrt` names.

    Arrays of floats are copied by `convert`.
    """
    forward_pass, backward_pass = _pair_of(target)
    bound = _bind(forward_pass, inputs, options)
    values, floats = _copy_arrays(bound.arguments.items(), convert)
    wrt = floats if wrt is None else _check_names(wrt, floats, _name(forward_pass))

    def forward() -> tuple[Any, Any]:
        return one_output(*forward_pass(**_copy_generators(values)))

    def backward(dy: Any, cache: Any, start: float = 0.0) -> dict[str, Any]:
        cache, split = cache
        result = backward_pass(split(dy), cache)
        gradients = result if isinstance(result, tuple) else (result,)
        advice = "If some of them have no gradient, name the others in wrt"
        return _name_gradients(gradients, wrt, _name(backward_pass), advice)

    arrays = {name: values[name] for name in wrt}
    constants = [
        value for name, value in values.items() if isinstance(value, np.ndarray) and name not in wrt
    ]

    def convert_arrays(convert: Convert) -> AbstractContextManager[Problem]:
        return nullcontext(pair_problem(target, inputs, options, wrt, convert))

    return Problem(_name(forward_pass), forward, backward, arrays, constants, convert_arrays)


def _check_names(wrt: Sequence[str], floats: list[str], function: str) -> list[str]:
    """Return the names in `wrt` after checking that they are those of float arrays."""
    if isinstance(wrt, str) or not isinstance(wrt, Sequence):
        raise TypeError(f"wrt is {describe(wrt)}; expected a list of names, such as ['x']")
    for name in wrt:
        if name not in floats:
            raise ValueError(
                f"wrt names {name!r}; expected some of {', '.join(floats)}, the float arrays "
                f"that {function} was given"
            )
    return list(wrt)


def _copy_generators(values: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with a copy of each random generator, so that each call draws the same."""
    return {
        name: copy.deepcopy(value) if isinstance(value, np.random.Generator) else value
        for name, value in values.items()
    }


def _bind(forward: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> inspect.BoundArguments:
    """Return the arguments of a forward function by name."""
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        raise TypeError(
            f"{_name(forward)} does not say which arguments it takes; expected a function that is "
            "written in Python. Wrap it in one"
        ) from None
    try:
        return signature.bind(*inputs, **options)
    except TypeError as error:
        raise TypeError(
            f"{_name(forward)} cannot be called like this: {error}; expected inputs and options "
            f"that fit {_name(forward)}{signature}, besides gradcheck's own options"
        ) from None


def _pair_of(target: Any) -> tuple[Any, Any]:
    """Return the two functions; a single function has its backward pass in the same module."""
    if isinstance(target, tuple) and len(target) == 2 and all(map(callable, target)):
        return target
    if not callable(target) or isinstance(target, type):
        raise TypeError(
            f"target is {describe(target)}; expected a layer, a function with a backward pass, or "
            "a pair of functions: gradcheck(layer, x), gradcheck((forward, backward), x)"
        )
    forward, name = target, _name(target)
    module = getattr(forward, "__module__", None) or "no module"
    backward = getattr(sys.modules.get(module), f"{name}_backward", None)
    if backward is None:
        raise TypeError(
            f"{name} has no {name}_backward in {module}; expected a pair. Pass "
            "both: gradcheck((forward, backward), ...)"
        )
    return forward, backward


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)  # a partial has none


def _require_float64(name: str, x: np.ndarray, layer: str = "") -> None:
    if x.dtype != np.float64:
        convert = f"Write {name}.astype('float64')"
        advice = f"Build the {layer} with dtype='float64'" if layer else convert
        raise TypeError(
            f"{name} has dtype {x.dtype}; expected float64, because differences in float32 hide "
            f"errors of one per cent. {advice}"
        )


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
