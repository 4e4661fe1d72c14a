"""The referee: is a backward pass the derivative of its forward pass?

Central differences in float64, over inputs and parameters::

    dL/dx  ~  (L(x + h) - L(x - h)) / 2h,    L = sum(y * v) for a fixed random v

and with them the rules of the protocol: a backward pass may be called twice, changes neither its
arguments nor its cache, and does not mind that the layer was applied again in between.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.module import Context, Gradients, Layer

TOLERANCE = 1e-6
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
        largest gradient in this tensor (or to a thousandth of the largest of all tensors, if that
        is more: some gradients are 0 by nature, as that of attention's key bias).
    where : tuple of int or None
        The entry with that error.
    analytic, numeric : float
        What the backward pass and the differences say there.
    no_derivative : int
        Entries at which the function has a corner: the slopes on both sides differ, and the
        backward pass gave a value between them. They are not failures.
    """

    name: str
    shape: tuple[int, ...]
    checked: str
    error: float
    where: tuple[int, ...] | None
    analytic: float
    numeric: float
    no_derivative: int


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
    """

    title: str
    tensors: list[TensorReport]
    broken_rules: list[str]
    tolerance: float = TOLERANCE

    @property
    def error(self) -> float:
        """The largest relative error of all tensors."""
        return max((tensor.error for tensor in self.tensors), default=0.0)

    @property
    def passed(self) -> bool:
        """Whether every error is within the tolerance and no rule was broken."""
        return not self.broken_rules and self.error <= self.tolerance

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        lines = [f"gradcheck of {self.title}: {verdict}, tolerance {self.tolerance:g}"]
        head = ("tensor", "shape", "checked", "error", "at", "backward", "difference", "")
        rows = [head]
        for t in self.tensors:
            note = f"{t.no_derivative} without a derivative" if t.no_derivative else ""
            if not t.error <= self.tolerance:
                note = "<-- wrong" + (f", {note}" if note else "")
            where = "" if t.where is None else str(list(t.where))
            rows.append(
                (
                    t.name,
                    str(t.shape),
                    t.checked,
                    f"{t.error:.1e}",
                    where,
                    f"{t.analytic:.9g}",
                    f"{t.numeric:.9g}",
                    note,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        lines.extend(f"  rule broken: {rule}" for rule in self.broken_rules)
        return "\n".join(lines)


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
    """

    title: str
    run: Callable[[], tuple[Any, Any]]
    pull: Callable[[Any, Any], dict[str, Any]]
    arrays: dict[str, np.ndarray]
    constants: list[np.ndarray] = field(default_factory=list)

    def watched(self) -> list[np.ndarray]:
        """Return every array that no pass may change."""
        return [*self.arrays.values(), *self.constants]


def gradcheck(
    target: Layer | Callable[..., Any] | tuple[Callable[..., Any], Callable[..., Any]],
    *inputs: Any,
    wrt: Sequence[str] | None = None,
    mask: Any = None,
    training: bool = False,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    max_entries: int = 64,
    directions: int = 8,
    **options: Any,
) -> GradcheckReport:
    """Compare a backward pass with central differences, in float64.

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
    training : bool
        For layers: with dropout, its masks the same in each evaluation.
    seed : int
        Draws v, the directions, and a layer's dropout masks.
    tolerance : float
        The largest relative error that passes.
    max_entries : int
        A tensor of up to so many entries is checked entry by entry, a larger one along random
        directions.
    directions : int
        How many.
    **options
        Passed on to a forward function.

    Returns
    -------
    report : GradcheckReport
        Print it for a table of all tensors.

    Raises
    ------
    GradcheckError
        A gradient is wrong or the protocol is broken; the message is the report.
    TypeError
        An input or parameter is float32: the rounding of float32 hides errors of a per cent.

    Examples
    --------
    >>> import numpy as np, npformer as nf
    >>> rng = np.random.default_rng(0)
    >>> x, W, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)
    >>> nf.gradcheck(nf.functional.linear, x, W, b).passed
    True
    """
    if isinstance(target, Layer):
        if len(inputs) != 1:
            raise TypeError(f"got {len(inputs)} inputs; expected one, x, for a layer")
        problem = _layer_problem(target, inputs[0], mask, training, seed)
    else:
        if mask is not None:
            options["mask"] = mask
        problem = _pair_problem(target, inputs, options, wrt)
    report = _referee(problem, seed, tolerance, max_entries, directions)
    if not report.passed:
        raise GradcheckError(report)
    return report


def _require_float64(name: str, x: np.ndarray) -> None:
    if x.dtype != np.float64:
        raise TypeError(
            f"{name} has dtype {x.dtype}; expected float64, for differences in float32 hide "
            "errors of a per cent. Write x.astype('float64'), or build the layer with "
            "dtype='float64'"
        )


def _layer_problem(layer: Layer, x: Any, mask: Any, training: bool, seed: int) -> _Problem:
    x = np.array(x)  # perturbed in place: not the caller's
    arrays = {}
    if x.dtype.kind == "f":
        _require_float64("x", x)
        arrays["x"] = x
    for name, value in layer.parameters().items():
        _require_float64(name, value)
        arrays[name] = value

    def run() -> tuple[Any, Any]:
        generator = np.random.default_rng(seed) if training else None
        return layer.forward(x, Context(training=training, generator=generator, mask=mask))

    def pull(dy: Any, cache: Any) -> dict[str, Any]:
        gradients = Gradients(layer)
        dx = layer.backward(dy, cache, gradients)
        return ({"x": dx} if "x" in arrays else {}) | dict(gradients)

    constants = [] if "x" in arrays else [x]
    return _Problem(type(layer).__name__, run, pull, arrays, constants)


def _pair_problem(
    target: Any, inputs: tuple[Any, ...], options: dict[str, Any], wrt: Sequence[str] | None
) -> _Problem:
    if isinstance(target, tuple):
        forward, backward = target
    else:
        forward = target
        backward = getattr(sys.modules[target.__module__], f"{target.__name__}_backward", None)
        if backward is None:
            raise TypeError(
                f"{target.__name__} has no {target.__name__}_backward in {target.__module__}; "
                "expected a pair. Pass both: gradcheck((forward, backward), ...)"
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
                f"{forward.__name__} was given"
            )
    arrays = {name: given[name] for name in wrt}

    def run() -> tuple[Any, Any]:
        fresh = {
            name: copy.deepcopy(value) if isinstance(value, np.random.Generator) else value
            for name, value in given.items()
        }
        return forward(**fresh)  # type: ignore[no-any-return]

    def pull(dy: Any, cache: Any) -> dict[str, Any]:
        result = backward(dy, cache)
        gradients = result if isinstance(result, tuple) else (result,)
        if len(gradients) != len(arrays):
            raise TypeError(
                f"{backward.__name__} returned {len(gradients)} gradients; expected "
                f"{len(arrays)}, one for each of {', '.join(arrays)}. If some of them have none, "
                "name the others in wrt"
            )
        return dict(zip(arrays, gradients, strict=True))

    constants = [v for n, v in given.items() if isinstance(v, np.ndarray) and n not in arrays]
    return _Problem(forward.__name__, run, pull, arrays, constants)


def _referee(
    problem: _Problem, seed: int, tolerance: float, max_entries: int, directions: int
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
    tensors = []
    for name, array in problem.arrays.items():
        if gradients[name].shape != array.shape:
            broken.append(
                f"the gradient of {name} has shape {gradients[name].shape}, not {array.shape}"
            )
            continue
        probe = _Probe(problem.run, y, v, array, gradients[name], float(floor), tolerance)
        every = np.arange(array.size)
        if array.size <= max_entries:
            tensors.append(probe.entries(name, every, f"all {array.size} entries"))
            continue
        found = probe.directions(name, rng, directions)
        if not found.error <= tolerance:  # where? look at single entries
            some = np.sort(rng.choice(every, size=min(array.size, 4 * max_entries), replace=False))
            closer = probe.entries(name, some, f"{len(some)} entries")
            found = found if closer.error <= tolerance else closer
        tensors.append(found)
    return GradcheckReport(problem.title, tensors, broken, tolerance)


def _check_rules(
    problem: _Problem, before: list[np.ndarray], y: Any, cache: Any, v: np.ndarray
) -> tuple[dict[str, Any], list[str]]:
    """Run the backward pass, several times, and watch that it keeps to the protocol."""
    broken = []
    if not np.isfinite(y).all():
        broken.append("the forward pass gave NaN or infinity")
    dy = v.copy()

    def pulled() -> dict[str, Any]:
        return {name: np.array(g) for name, g in problem.pull(dy, cache).items()}

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
    # Applied again, to other values, before the first cache is used.
    for x in problem.arrays.values():
        x += 0.1 * np.cos(np.arange(x.size)).reshape(x.shape)
    problem.run()
    for x, original in zip(problem.arrays.values(), before, strict=False):
        x[...] = original
    if not same(gradients, pulled()):
        broken.append("applied twice, the second forward pass spoilt the first one's cache")
    if changed or not untouched():
        broken.append("a pass changed an input or a parameter")
    return gradients, broken


@dataclass
class _Probe:
    """Differences of L = sum(y * v) when one array moves."""

    run: Callable[[], tuple[Any, Any]]
    y: np.ndarray
    v: np.ndarray
    array: np.ndarray
    gradient: np.ndarray
    floor: float
    tolerance: float

    def entries(self, name: str, indices: np.ndarray, checked: str) -> TensorReport:
        """Check single entries."""
        units = ((int(i), _unit(self.array.shape, int(i))) for i in indices)
        return self._report(name, checked, units, len(indices))

    def directions(self, name: str, rng: np.random.Generator, number: int) -> TensorReport:
        """Check random directions through all entries."""
        drawn = ((None, _direction(rng, self.array.shape)) for _ in range(number))
        return self._report(name, f"{number} directions", drawn, number)

    def _report(
        self, name: str, checked: str, along: Iterable[tuple[int | None, np.ndarray]], number: int
    ) -> TensorReport:
        index: list[int | None] = []
        analytic, numeric = np.zeros(number), np.zeros(number)
        units = []
        for k, (i, u) in enumerate(along):
            index.append(i)
            units.append(u)
            analytic[k] = float((self.gradient * u).sum())
            below, above = self._slopes(u, STEP)
            numeric[k] = 0.5 * (below + above)
        scale = max(
            float(np.abs(analytic).max(initial=0.0)),
            float(np.abs(numeric).max(initial=0.0)),
            self.floor,
            np.finfo(np.float64).tiny,
        )
        errors = np.abs(analytic - numeric) / scale
        corners = 0
        for j in np.flatnonzero(~(errors <= self.tolerance)):
            errors[j], numeric[j], corner = self._second_look(units[j], analytic[j], scale)
            corners += corner
        worst = int(np.argmax(np.where(np.isnan(errors), np.inf, errors))) if number else 0
        at = index[worst] if number else None
        where = None if at is None else np.unravel_index(at, self.array.shape)
        return TensorReport(
            name=name,
            shape=self.array.shape,
            checked=checked,
            error=float(errors[worst]) if number else 0.0,
            where=None if where is None else tuple(int(axis) for axis in where),
            analytic=float(analytic[worst]) if number else 0.0,
            numeric=float(numeric[worst]) if number else 0.0,
            no_derivative=corners,
        )

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
        # Differences before the sum: what does not depend on this entry cancels exactly.
        below = float(((self.y - low) * self.v).sum()) / h
        above = float(((high - self.y) * self.v).sum()) / h
        return below, above

    def _second_look(
        self, u: np.ndarray, analytic: float, scale: float
    ) -> tuple[float, float, bool]:
        """Tell a wrong gradient from a corner: (error, numeric derivative, whether a corner).

        Where a function is smooth, the slopes from below and above meet as the step shrinks. At a
        corner their gap stays, and any value between them is as good as another. A corner *near*
        the point spoils the large step only.
        """
        below, above = self._slopes(u, STEP)
        gap = abs(above - below)
        for shrink in (8.0, 64.0):
            below, above = self._slopes(u, STEP / shrink)
            numeric = 0.5 * (below + above)
            error = abs(analytic - numeric) / scale
            if error <= self.tolerance:
                return error, numeric, False
        slack = self.tolerance * scale
        stays = abs(above - below) > max(0.5 * gap, 1e3 * slack)
        if stays and min(below, above) - slack <= analytic <= max(below, above) + slack:
            return 0.0, analytic, True
        return error, numeric, False


def _unit(shape: tuple[int, ...], i: int) -> np.ndarray:
    u = np.zeros(shape)
    u.flat[i] = 1.0
    return u


def _direction(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    u = rng.normal(size=shape)
    return np.asarray(u / np.linalg.norm(u))
