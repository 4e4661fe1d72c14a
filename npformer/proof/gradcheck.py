"""The referee: is a backward pass the derivative of its forward pass?

Central differences in float64, over inputs and parameters::

    dL/dx  ~  (L(x + h) - L(x - h)) / 2h,    L = sum(y * v) for a fixed random v

A second referee where the function can be continued to complex numbers, see `complex_step`::

    dL/dx  =  Im L(x + ih) / h

It has no truncation and no cancellation, and so sees what differences cannot: a constant cut short,
a backward pass that rounds to float32.

A layer is judged as it is written. Its twin (`npformer.fast`) is then compared with it, in float64
and in float32, so that what runs is judged too.

And the rules of the protocol: a backward pass may be called twice, changes neither its arguments
nor its cache, and does not mind that the layer was applied again in between.
"""

from __future__ import annotations

import copy
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from npformer.core import Context, Gradients, Layer, checks
from npformer.engine import fast
from npformer.proof import complex_step
from npformer.proof.complex_step import NotAnalytic
from npformer.proof.twincheck import TwinReport, in_float32, judged

TOLERANCE = 1e-6
COMPLEX_TOLERANCE = 1e-10
STEP = np.finfo(np.float64).eps ** (1 / 3)  # balances rounding (eps / h) and truncation (h^2)


class GradcheckError(AssertionError):
    """A backward pass is not the derivative of its forward pass, or breaks the protocol.

    Attributes
    ----------
    report : GradcheckReport
    """

    def __init__(self, report: GradcheckReport) -> None:
        super().__init__(f"\n{report}")
        self.report = report


@dataclass(frozen=True)
class TensorReport:
    """What was found for one input or parameter.

    Attributes
    ----------
    name : str
    shape : tuple of int
    checked : str
        "all 12 entries" or "8 directions".
    error : float
        The largest difference between backward pass and central difference, relative to the
        largest of both in this tensor, corners apart (or to a thousandth of the largest gradient of
        all tensors, or 1e-4 of the largest output, if that is more: some gradients are 0 by nature,
        as that of attention's key bias).
    where : tuple of int or None
        The entry with that error.
    analytic, numeric : float
        What the backward pass and the differences say there.
    no_derivative : int
        Entries at which the function has a corner: the slopes on both sides differ, and the
        backward pass gave a value between them. They are not failures.
    complex_error : float or None
        The same as `error`, against the complex step; entries at corners do not count. None where
        it does not apply.
    """

    name: str
    shape: tuple[int, ...]
    checked: str
    error: float
    where: tuple[int, ...] | None
    analytic: float
    numeric: float
    no_derivative: int
    complex_error: float | None = None


@dataclass(frozen=True)
class GradcheckReport:
    """What the referee found.

    Attributes
    ----------
    title : str
        What was checked.
    tensors : list of TensorReport
    broken_rules : list of str
        Rules of the protocol that were broken.
    tolerance : float
        Errors up to this one pass.
    complex_tolerance : float or None
        Errors against the complex step up to this one pass; None leaves it out.
    not_analytic : str
        Why there is no complex step; empty if there is.
    twins : tuple of TwinReport
        How far the layer's twin is from it, in each dtype; empty if there is no twin.
    """

    title: str
    tensors: list[TensorReport]
    broken_rules: list[str]
    tolerance: float = TOLERANCE
    complex_tolerance: float | None = COMPLEX_TOLERANCE
    not_analytic: str = ""
    twins: tuple[TwinReport, ...] = ()

    @property
    def error(self) -> float:
        """The largest relative error of all tensors; NaN if one is."""
        return float(np.max([tensor.error for tensor in self.tensors], initial=0.0))

    @property
    def complex_error(self) -> float | None:
        """The largest relative error against the complex step; None if it applies to no tensor."""
        found = [t.complex_error for t in self.tensors if t.complex_error is not None]
        return float(np.max(found)) if found else None

    @property
    def passed(self) -> bool:
        """Whether every error is within the tolerance and no rule was broken."""
        twins = all(twin.passed for twin in self.twins)
        return twins and not self.broken_rules and not any(map(self._wrong, self.tensors))

    def _wrong(self, tensor: TensorReport) -> bool:
        return _wrong(tensor, self.tolerance, self.complex_tolerance)

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        lines = [f"gradcheck of {self.title}: {verdict}, tolerance {self.tolerance:g}"]
        head = "tensor", "shape", "checked", "error", "complex step", "at", "backward", "difference"
        rows: list[tuple[str, ...]] = [(*head, "")]
        for t in self.tensors:
            note = f"{t.no_derivative} without a derivative" if t.no_derivative else ""
            if self._wrong(t):
                note = "<-- wrong" + (f", {note}" if note else "")
            where = "" if t.where is None else str(list(t.where))
            rows.append(
                (
                    t.name,
                    str(t.shape),
                    t.checked,
                    f"{t.error:.1e}",
                    "-" if t.complex_error is None else f"{t.complex_error:.1e}",
                    where,
                    f"{t.analytic:.9g}",
                    f"{t.numeric:.9g}",
                    note,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        if self.not_analytic:
            lines.append(f"  no complex step: {self.not_analytic}")
        lines.extend(f"  rule broken: {rule}" for rule in self.broken_rules)
        for twin in self.twins:
            line = (
                f"  twin in {twin.dtype}: {twin.error:.1e} from the layer at most, in {twin.tensor}"
            )
            if not twin.passed:
                layer_wrong = any(map(self._wrong, self.tensors))
                and_layer = (
                    "the layer, too, is wrong" if layer_wrong else "the layer itself is right"
                )
                line += f"; tolerance {twin.tolerance:g}  <-- the twin is wrong ({and_layer})"
            lines.append(line)
        return "\n".join(lines)


_Complex = tuple[Callable[[], tuple[Any, Any]], dict[str, np.ndarray]]


@dataclass
class _Problem:
    """A function of named arrays, with its gradients.

    Attributes
    ----------
    run : callable
        () -> (y, cache), reading the arrays as they are now.
    pull : callable
        (dy, cache) -> gradients, one for each array.
    arrays : dict
        The arrays to differentiate by, perturbed in place.
    constants : list
        Arrays that must not change either.
    on_complex : callable
        () -> a context in which there are complex copies of all arrays: their own run, and those
        to differentiate by.
    """

    title: str
    run: Callable[[], tuple[Any, Any]]
    pull: Callable[[Any, Any], dict[str, Any]]
    arrays: dict[str, np.ndarray]
    on_complex: Callable[[], AbstractContextManager[_Complex]]
    constants: list[np.ndarray] = field(default_factory=list)

    def watched(self) -> list[np.ndarray]:
        """Return every array that no pass may change."""
        return [*self.arrays.values(), *self.constants]


def gradcheck(
    target: Layer | Callable[..., Any] | tuple[Callable[..., Any], Callable[..., Any]],
    *inputs: Any,
    wrt: Sequence[str] | None = None,
    mask: Any = None,
    types: Any = None,
    training: bool = False,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    complex_tolerance: float | None = COMPLEX_TOLERANCE,
    max_entries: int = 64,
    directions: int = 8,
    **options: Any,
) -> GradcheckReport:
    """Compare a backward pass with central differences, and with the complex step, in float64.

    Parameters
    ----------
    target : Layer, function, or (function, function)
        A layer or model; a forward function whose `name_backward` stands in the same module; or
        forward and backward.
    *inputs : array or any
        The arguments of the forward pass. float64 arrays are differentiated by; whole numbers,
        masks and other values are passed on. A random generator begins anew in each evaluation.
    wrt : sequence of str, optional
        For functions: names of the arguments that the backward pass gives gradients for. All float
        arrays if not given.
    mask : bool array, optional
        Padding for a layer; passed on to a function that takes one.
    types : int array, optional
        Types of the tokens for a model; passed on to a function that takes them.
    training : bool
        For layers: with dropout, its masks the same in each evaluation.
    seed : int
        Draws v, the directions, and a layer's dropout masks.
    tolerance : float
        The largest relative error that passes.
    complex_tolerance : float or None
        The largest relative error against the complex step that passes. None leaves it out.
    max_entries : int
        A tensor of up to so many entries is checked entry by entry, a larger one along random
        directions.
    directions : int
        How many.
    **options
        Passed on to a forward function; a layer takes none.

    Returns
    -------
    report : GradcheckReport
        Print it for a table of all tensors.

    Raises
    ------
    GradcheckError
        A gradient is wrong or the protocol is broken; the message is the report.
    TypeError
        An input or parameter is float32: the rounding of float32 hides errors of a per cent. Or
        there is nothing to differentiate by, or an option that nobody takes.

    Notes
    -----
    The complex step needs a forward pass that runs on complex numbers and goes on as the same
    formula. Where it does not (a real part is taken, values are copied into real arrays or handed
    to code that knows no complex numbers), the report has "-" instead of an error and says why.
    That is no failure: differences judge alone.

    Examples
    --------
    >>> import numpy as np, npformer as nf
    >>> rng = np.random.default_rng(0)
    >>> x, W, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)
    >>> nf.gradcheck(nf.functional.linear, x, W, b).passed
    True
    """
    checks.positive("directions", directions)
    checks.whole("max_entries", max_entries, at_least=0)
    if isinstance(target, Layer):
        if len(inputs) != 1:
            raise TypeError(f"got {len(inputs)} inputs; expected one, x, for a layer")
        unused = [*options, *(["wrt"] if wrt is not None else [])]
        if unused:
            raise TypeError(
                f"got {', '.join(unused)}; expected nothing that only functions take. A layer is "
                "checked in x and in all of its parameters, with mask, types and training"
            )
        problem = _layer_problem(target, inputs[0], mask, types, training, seed)
        twin = fast(target)
    else:
        given = {"mask": mask, "types": types}
        options |= {name: value for name, value in given.items() if value is not None}
        problem = _pair_problem(target, inputs, options, wrt)
    if not problem.arrays:
        raise TypeError(
            f"{problem.title} was given no float64 array and has no parameters; expected something "
            "to differentiate by. Write x.astype('float64') if x holds whole numbers by chance"
        )
    report = _referee(problem, seed, tolerance, complex_tolerance, max_entries, directions)
    if isinstance(target, Layer) and twin is not target:
        report = _with_twin(report, target, twin, inputs[0], mask, types, training, seed)
    if not report.passed:
        raise GradcheckError(report)
    return report


def _require_float64(name: str, x: np.ndarray, layer: str = "") -> None:
    if x.dtype != np.float64:
        convert = f"Write {name}.astype('float64')"
        mend = f"Build the {layer} with dtype='float64'" if layer else convert
        raise TypeError(
            f"{name} has dtype {x.dtype}; expected float64, for differences in float32 hide "
            f"errors of a per cent. {mend}"
        )


def _one_array(y: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return several outputs side by side, and how to part a gradient of that again."""
    if not isinstance(y, tuple):
        return y, lambda dy: dy
    y = [part if part is None or hasattr(part, "shape") else np.asarray(part) for part in y]
    shapes = [None if part is None else part.shape for part in y]

    def parted(dy: Any) -> tuple[Any, ...]:
        parts: list[Any] = []
        start = 0
        for shape in shapes:
            if shape is None:
                parts.append(None)
                continue
            size = int(np.prod(shape))
            parts.append(dy[start : start + size].reshape(shape))
            start += size
        return tuple(parts)

    return np.concatenate([part.reshape(-1) for part in y if part is not None]), parted


def _layer_problem(
    layer: Layer,
    x: Any,
    mask: Any,
    types: Any,
    training: bool,
    seed: int,
    twin: Layer | None = None,
    dtype: str = "float64",
) -> _Problem:
    """Return the problem of a layer, or, with its parameters, of its twin."""
    x = np.array(x)  # perturbed in place: not the caller's
    passes = layer if twin is None else twin
    arrays = {}
    if x.dtype.kind == "f":
        if dtype == "float64":
            _require_float64("x", x)
        arrays["x"] = x = x.astype(dtype)
    for name, value in layer.parameters().items():
        if dtype == "float64":
            _require_float64(name, value, type(layer).__name__)
        arrays[name] = value

    def run_on(x: np.ndarray) -> tuple[Any, Any]:
        generator = np.random.default_rng(seed) if training else None
        context = Context(training=training, generator=generator, mask=mask, types=types)
        y, cache = passes.forward(x, context)
        y, parted = _one_array(y)
        return y, (cache, parted)

    def run() -> tuple[Any, Any]:
        return run_on(x)

    @contextmanager
    def on_complex() -> Iterator[_Complex]:
        buffers = {id(p._buffer): p._buffer for p in layer.named_parameters().values()}
        kept = {key: buffer.flat for key, buffer in buffers.items()}
        stepped = {"x": complex_step.guarded(x)} if "x" in arrays else {}
        try:
            for buffer in buffers.values():
                buffer.flat = complex_step.guarded(buffer.flat)
            run_stepped = partial(run_on, stepped.get("x", x))
            yield run_stepped, stepped | dict(layer.parameters())
        finally:
            for key, buffer in buffers.items():
                buffer.flat = kept[key]

    def pull(dy: Any, cache: Any) -> dict[str, Any]:
        gradients = Gradients(layer)
        saved, parted = cache
        dx = passes.backward(parted(dy), saved, gradients)
        return ({"x": dx} if "x" in arrays else {}) | dict(gradients)

    constants = [] if "x" in arrays else [x]
    return _Problem(type(layer).__name__, run, pull, arrays, on_complex, constants)


def _with_twin(report: GradcheckReport, layer: Layer, twin: Layer, *call: Any) -> GradcheckReport:
    """Return the report with what was found of a layer's twin.

    Parameters
    ----------
    report : GradcheckReport
    layer, twin : Layer
    *call
        x, mask, types, training and seed.
    """

    def problem(of: Layer | None = None, dtype: str = "float64") -> _Problem:
        x, mask, types, training, seed = call
        return _layer_problem(layer, x, mask, types, training, seed, of, dtype)

    truth, _ = _results(problem())
    found, broken = _results(problem(twin), rules=True)
    twins = [judged("float64", found, truth)]
    with in_float32(layer):
        try:
            plain, _ = _results(problem(dtype="float32"))
        except Exception:  # not of the twin: the layer itself does not run in float32
            plain = None
        if plain is not None:
            single, _ = _results(problem(twin, "float32"))
            twins.append(judged("float32", single, truth, plain))
    rules = [*report.broken_rules, *(f"twin: {rule}" for rule in broken)]
    return replace(report, twins=tuple(twins), broken_rules=rules)


def _results(problem: _Problem, rules: bool = False) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return y and all gradients of a problem, and the rules that it breaks, if that is asked."""
    before = [x.copy() for x in problem.watched()]
    y, cache = problem.run()
    y = np.array(y)
    v = np.random.default_rng(0).normal(size=y.shape).astype(y.dtype)
    if rules:
        gradients, broken = _check_rules(problem, before, y, cache, v)
    else:
        pulled = problem.pull(v, cache)
        gradients, broken = {n: np.array(g) for n, g in pulled.items() if g is not None}, []
    return {**gradients, "y": y}, broken


def _pair_problem(
    target: Any, inputs: tuple[Any, ...], options: dict[str, Any], wrt: Sequence[str] | None
) -> _Problem:
    if isinstance(target, tuple):
        forward, backward = target
    else:
        forward, title = target, _name(target)
        backward = getattr(sys.modules.get(target.__module__), f"{title}_backward", None)
        if backward is None:
            raise TypeError(
                f"{title} has no {title}_backward in {target.__module__}; expected a pair. Pass "
                "both: gradcheck((forward, backward), ...)"
            )
    bound = inspect.signature(forward).bind(*inputs, **options)
    given = {
        name: np.array(value) if isinstance(value, np.ndarray) else value
        for name, value in bound.arguments.items()
    }
    floats = [n for n, v in given.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    wrt = floats if wrt is None else list(wrt)
    for name in floats:
        _require_float64(name, given[name])
    for name in wrt:
        if name not in floats:
            raise ValueError(
                f"wrt names {name!r}; expected some of {', '.join(floats)}, the float arrays that "
                f"{_name(forward)} was given"
            )
    arrays = {name: given[name] for name in wrt}

    def run_on(given: dict[str, Any]) -> tuple[Any, Any]:
        fresh = {
            name: copy.deepcopy(value) if isinstance(value, np.random.Generator) else value
            for name, value in given.items()
        }
        y, cache = forward(**fresh)
        y, parted = _one_array(y)
        return y, (cache, parted)

    def run() -> tuple[Any, Any]:
        return run_on(given)

    @contextmanager
    def on_complex() -> Iterator[_Complex]:
        stepped = given | {name: complex_step.guarded(given[name]) for name in floats}
        yield lambda: run_on(stepped), {name: stepped[name] for name in arrays}

    def pull(dy: Any, cache: Any) -> dict[str, Any]:
        saved, parted = cache
        result = backward(parted(dy), saved)
        gradients = result if isinstance(result, tuple) else (result,)
        if len(gradients) != len(arrays):
            raise TypeError(
                f"{_name(backward)} returned {len(gradients)} gradients; expected "
                f"{len(arrays)}, one for each of {', '.join(arrays)}. If some of them have none, "
                "name the others in wrt"
            )
        return dict(zip(arrays, gradients, strict=True))

    constants = [v for n, v in given.items() if isinstance(v, np.ndarray) and n not in arrays]
    return _Problem(_name(forward), run, pull, arrays, on_complex, constants)


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)  # a partial has none


def _wrong(tensor: TensorReport, tolerance: float, complex_tolerance: float | None) -> bool:
    """Whether one of the two referees finds this gradient wrong; NaN is."""
    exact = tensor.complex_error
    return not tensor.error <= tolerance or not (
        exact is None or complex_tolerance is None or exact <= complex_tolerance
    )


def _referee(
    problem: _Problem,
    seed: int,
    tolerance: float,
    complex_tolerance: float | None,
    max_entries: int,
    directions: int,
) -> GradcheckReport:
    rng = np.random.default_rng(seed)
    before = [x.copy() for x in problem.watched()]
    y, cache = problem.run()
    y = np.array(y)  # a pass that hands x on returns the very array that is perturbed below
    v = np.asarray(rng.normal(size=np.shape(y)))
    gradients, broken = _check_rules(problem, before, y, cache, v)

    # A gradient that is 0 by nature leaves only rounding, eps |y| / h, to compare: it is measured
    # against the other tensors' gradients, or, where there are none, against y.
    largest = max((np.abs(g).max(initial=0.0) for g in gradients.values()), default=0.0)
    floor = max(1e-3 * largest, 1e-4 * np.abs(y).max(initial=0.0))
    tensors, reasons = [], []
    for name, array in problem.arrays.items():
        if name not in gradients:
            broken.append(f"the backward pass returned None as the gradient of {name}")
            continue
        if gradients[name].shape != array.shape:
            broken.append(
                f"the gradient of {name} has shape {gradients[name].shape}, not {array.shape}"
            )
            continue
        steps = None if complex_tolerance is None else problem.on_complex
        probe = _Probe(
            problem.run, steps, y, v, name, array, gradients[name], float(floor), tolerance
        )
        every = np.arange(array.size)
        if array.size <= max_entries:
            tensors.append(probe.entries(every, f"all {array.size} entries"))
        else:
            found = probe.directions(rng, directions)
            if _wrong(found, tolerance, complex_tolerance):  # where? look at single entries
                n = min(array.size, 4 * max_entries)
                some = np.sort(rng.choice(every, size=n, replace=False))
                closer = probe.entries(some, f"{n} entries")
                found = closer if _wrong(closer, tolerance, complex_tolerance) else found
            tensors.append(found)
        reasons.append(probe.not_analytic)
    why = next(filter(None, reasons), "")
    return GradcheckReport(problem.title, tensors, broken, tolerance, complex_tolerance, why)


def _check_rules(
    problem: _Problem, before: list[np.ndarray], y: Any, cache: Any, v: np.ndarray
) -> tuple[dict[str, Any], list[str]]:
    """Run the backward pass, several times, and watch that it keeps to the protocol."""
    broken = []
    if not np.isfinite(y).all():
        broken.append("the forward pass gave NaN or infinity")
    dy = v.copy()

    def pulled() -> dict[str, Any]:
        found = problem.pull(dy, cache)
        return {name: np.array(g) for name, g in found.items() if g is not None}

    def untouched() -> bool:
        pairs = zip(problem.watched(), before, strict=True)
        return all(np.array_equal(x, b, equal_nan=True) for x, b in pairs)

    def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
        return all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)

    gradients = pulled()
    if not np.array_equal(dy, v):
        broken.append("the backward pass changed its dy")
        dy[...] = v
    if not same(gradients, pulled()):
        broken.append("the backward pass called twice gave two results: it changes its cache")
    if not np.array_equal(problem.run()[0], y, equal_nan=True):
        broken.append("the forward pass called twice gave two results")
    changed = not untouched()
    _run_elsewhere(problem, before)  # before the first cache is used
    if not same(gradients, pulled()):
        broken.append("applied twice, the second forward pass spoilt the first one's cache")
    if changed or not untouched():
        broken.append("a pass changed an input or a parameter")
    return gradients, broken


def _run_elsewhere(problem: _Problem, before: list[np.ndarray]) -> None:
    """Apply the function to other values, and put these ones back whatever happens."""
    arrays = list(problem.arrays.values())
    try:
        for x in arrays:
            x += 0.1 * np.cos(np.arange(x.size)).reshape(x.shape)
        try:
            problem.run()
        except Exception:  # not of these values: a logarithm's, for one
            for x, original in zip(arrays, before, strict=False):
                x[...] = original * (1.0 + 1e-3 * np.cos(np.arange(x.size)).reshape(x.shape))
            problem.run()
    finally:
        for x, original in zip(arrays, before, strict=False):
            x[...] = original


@dataclass
class _Probe:
    """Derivatives of L = sum(y * v) when one array moves."""

    run: Callable[[], tuple[Any, Any]]
    on_complex: Callable[[], AbstractContextManager[_Complex]] | None
    y: np.ndarray
    v: np.ndarray
    name: str
    array: np.ndarray
    gradient: np.ndarray
    floor: float
    tolerance: float
    not_analytic: str = ""

    def entries(self, indices: np.ndarray, checked: str) -> TensorReport:
        """Check single entries."""
        units = [_unit(self.array.shape, int(i)) for i in indices]
        return self._report(checked, [int(i) for i in indices], units)

    def directions(self, rng: np.random.Generator, number: int) -> TensorReport:
        """Check random directions through all entries."""
        units = [_direction(rng, self.array.shape) for _ in range(number)]
        return self._report(f"{number} directions", None, units)

    def _report(
        self, checked: str, indices: list[int] | None, units: list[np.ndarray]
    ) -> TensorReport:
        if not units:
            return TensorReport(self.name, self.array.shape, checked, 0.0, None, 0.0, 0.0, 0)
        analytic = np.array([(self.gradient * u).sum() for u in units])
        numeric = np.array([0.5 * sum(self._slopes(u, STEP)) for u in units])
        corners, looked_at = np.zeros((2, len(units)), dtype=bool)
        while True:  # a corner found may lower the scale, and uncover what hid below it
            smooth = np.abs([analytic[~corners], numeric[~corners]])
            scale = max(
                float(smooth.max(initial=0.0)), self.floor, float(np.finfo(np.float64).tiny)
            )
            errors = np.where(corners, 0.0, np.abs(analytic - numeric) / scale)
            suspects = np.flatnonzero(~(errors <= self.tolerance) & ~looked_at)
            if not suspects.size:
                break
            looked_at[suspects] = True
            for j in suspects:
                numeric[j], corners[j] = self._second_look(units[j], analytic[j], scale)
            if corners[suspects].any():
                looked_at[:] = corners  # the others by the new scale, with all the steps there are
        worst = _worst(errors)
        complex_errors = self._complex_errors(units, analytic, numeric, errors, corners, scale)
        if complex_errors is not None and errors[worst] <= self.tolerance:
            worst = _worst(complex_errors)
        where = None if indices is None else np.unravel_index(indices[worst], self.array.shape)
        return TensorReport(
            name=self.name,
            shape=self.array.shape,
            checked=checked,
            error=float(errors[_worst(errors)]),
            where=None if where is None else tuple(int(axis) for axis in where),
            analytic=float(analytic[worst]),
            numeric=float(numeric[worst]),
            no_derivative=int(corners.sum()),
            complex_error=None if complex_errors is None else float(complex_errors.max()),
        )

    def _complex_errors(
        self,
        units: list[np.ndarray],
        analytic: np.ndarray,
        numeric: np.ndarray,
        errors: np.ndarray,
        corners: np.ndarray,
        scale: float,
    ) -> np.ndarray | None:
        """Return the errors against the complex step; None, and a reason, where it fails."""
        if self.on_complex is None:
            return None
        exact = analytic.copy()  # at a corner any slope will do
        try:
            with self.on_complex() as (run, stepped):
                for j in np.flatnonzero(~corners):
                    dy = complex_step.derivative(run, stepped[self.name], units[j])
                    exact[j] = (dy * self.v).sum()
        except NotAnalytic as reason:
            self.not_analytic = str(reason)
            return None
        # Where differences and backward pass agree, neither can be far off: then this is.
        far_off = np.abs(exact - numeric) > 100.0 * self.tolerance * scale
        if np.any(far_off & ~corners & (errors <= self.tolerance)):
            self.not_analytic = "its forward pass does something else with complex numbers"
            return None
        return np.asarray(np.abs(analytic - exact) / scale)

    def _slopes(self, u: np.ndarray, h: float) -> tuple[float, float]:
        """Return dL/du from below and from above, each over a step h."""
        kept = self.array.copy()
        try:
            self.array[...] = kept - h * u
            low = np.array(self.run()[0])
            self.array[...] = kept + h * u
            high = np.array(self.run()[0])
        finally:
            self.array[...] = kept
        lacks_below = self._made_up_for(u, kept - h * u, kept, h)
        lacks_above = self._made_up_for(u, kept, kept + h * u, h)
        # Differences before the sum: what does not depend on this entry cancels exactly.
        below = float(((self.y - low) * self.v).sum()) / h
        above = float(((high - self.y) * self.v).sum()) / h
        return below + lacks_below, above + lacks_above

    def _made_up_for(self, u: np.ndarray, low: np.ndarray, high: np.ndarray, h: float) -> float:
        """Return what rounding took off a slope: x + h u is rounded, so the step is not quite h u.

        It is made up for by the backward pass's own slope, so an error there shows by so much less
        as the step lacks. NaN, and so no slope at all, where that is a tenth or more.
        """
        moved = (u != 0.0) & np.isfinite(low) & np.isfinite(high)
        lacks = u[moved] - (high[moved] - low[moved]) / h
        if np.abs(lacks).max(initial=0.0) > 0.1 * np.abs(u).max():
            return math.nan
        return float((self.gradient[moved] * lacks).sum())

    def _second_look(self, u: np.ndarray, analytic: float, scale: float) -> tuple[float, bool]:
        """Tell a wrong gradient from a corner: (numeric derivative, whether a corner).

        Where a function is smooth, the slopes from below and above meet as the step shrinks. At a
        corner their gap stays, and any value between them is as good as another. A corner *near*
        the point spoils the large step only.
        """
        below, above = self._slopes(u, STEP)
        gap, numeric = abs(above - below), 0.5 * (below + above)
        for shrink in (8.0, 64.0):
            closer = self._slopes(u, STEP / shrink)
            if np.isnan(closer).any():  # too small a step for numbers of this size
                continue
            below, above = closer
            numeric = 0.5 * (below + above)
            error = abs(analytic - numeric) / scale
            if error <= self.tolerance:
                return numeric, False
        slack = self.tolerance * scale
        stays = abs(above - below) > max(0.5 * gap, 1e3 * slack)
        if stays and min(below, above) - slack <= analytic <= max(below, above) + slack:
            return analytic, True
        return numeric, False


def _worst(errors: np.ndarray) -> int:
    return int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))


def _unit(shape: tuple[int, ...], i: int) -> np.ndarray:
    u = np.zeros(shape)
    u.flat[i] = 1.0
    return u


def _direction(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    u = rng.normal(size=shape)
    return np.asarray(u / np.linalg.norm(u))
