"""gradcheck: is a backward pass the derivative of its forward pass?

Central differences in float64, over inputs and parameters::

    dx  ~  (L(x + h) - L(x - h)) / 2h,    L = sum(y * v) for a fixed random v

and, where the function can be continued to complex numbers, the complex step (`complex_step`). This
also finds smaller errors, such as a constant with too few digits or a backward pass that rounds to
float32.

Then the same in float32, where it must be equal up to rounding, and for a dy with gaps between its
entries, in Fortran order, and read-only.

For a layer, the plain code is checked. Then, if the engine is in use, its twin (`npformer.fast`),
which runs in its place, is compared with it in float64 and in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from npformer.core import Context, Layer, checks
from npformer.core.dispatch import faster
from npformer.core.inputs import check_inputs, inputs_of_arrays, within
from npformer.proof.evidence import Evidence
from npformer.proof.finite_differences import Probe
from npformer.proof.naming import name_errors, numbers_of
from npformer.proof.problem import Problem, layer_problem, pair_problem
from npformer.proof.report import (
    COMPLEX_TOLERANCE,
    TOLERANCE,
    GradcheckError,
    GradcheckReport,
    TensorReport,
)
from npformer.proof.results import Results, check_float32
from npformer.proof.rules import check_call, check_rules
from npformer.proof.twincheck import TwinReport, check_twin

STREAM = b"gradcheck"
"""Makes v differ from what default_rng(seed) draws: it may be x. With v = x the gradient of W in
x W is x^T x, which is symmetric, and its transpose would pass."""


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
        A layer or model; a forward function with its `name_backward` in the same module; or a pair
        (forward, backward).
    *inputs : array or any
        The arguments of the forward pass: for a layer x, or a and b if it has two inputs. Gradients
        with respect to float64 arrays are checked; whole numbers, masks and other values are only
        passed on. Each evaluation gets a fresh copy of a random generator.
    wrt : sequence of str, optional
        For functions: names of the arguments that the backward pass returns gradients for. By
        default, all float arrays.
    mask, types : array, optional
        Padding mask and token types: for a layer, part of its context; for a function, arguments.
        For a layer with two inputs, a tuple with an array or None for each.
    training : bool
        For layers: whether dropout is active. Its masks are the same in each evaluation.
    seed : int
        Seed of v, of the directions and of a layer's dropout masks.
    tolerance, complex_tolerance : float
        The largest relative error that passes, against differences and against the complex step.
        None for the latter skips the complex step.
    max_entries : int
        A tensor with at most this many entries is checked entry by entry, a larger one along random
        directions.
    directions : int
        The number of random directions.
    **options
        Further arguments of a forward function.

    Raises
    ------
    GradcheckError
        A gradient is wrong or the protocol is broken; the message is the report.
    TypeError
        An input or parameter is float32, there is nothing to differentiate with respect to, or an
        option does not exist.

    Notes
    -----
    The complex step needs a forward pass that computes the same formula with complex numbers. If it
    does not, for example because it takes a real part or copies values into real arrays, the report
    has "-" instead of an error and says why. This is not a failure: the differences alone decide.

    What is wrong only in float32, or only for a dy with another memory layout, is a broken rule.
    Float32 is left out where it cannot be judged: with dropout or another random generator, which
    may draw other numbers, and where the code raises, as with constants in float64.

    gradcheck cannot judge what it is not given: other sizes, values, masks and uses. Call it with
    two lengths, one of them odd, and with batches of one and of several samples; with values on
    each side of a threshold, large and tiny; with parameters other than initial ones, which may be
    zeros or a symmetric matrix; without a mask, and with masks that have holes or keep nothing;
    with three token types and repeated ids; in training with p other than 0.5. A gradient that is
    wrong by less than `tolerance` passes where there is no complex step.

    None as a gradient passes if y does not depend on that array.

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
    checks.whole("seed", seed, at_least=0)
    checks.flag("training", training)
    checks.number("tolerance", tolerance, above=0.0)
    tolerance = float(tolerance)
    if complex_tolerance is not None:
        checks.number("complex_tolerance", complex_tolerance, above=0.0)
        complex_tolerance = float(complex_tolerance)

    def new_context() -> Context:
        generator = np.random.default_rng(seed) if training else None
        return within(checked, Context(training=training, generator=generator))

    if isinstance(target, Layer):
        _require_layer_arguments(target, inputs, wrt, options)
        mask, types = deepcopy((mask, types))  # a layer that changes them changes copies
        checked = check_inputs(inputs_of_arrays(target, inputs, mask, types))
        problem = layer_problem(target, inputs, new_context)
    else:
        of_tokens = {"mask": mask, "types": types}
        options |= {name: array for name, array in of_tokens.items() if array is not None}
        problem = pair_problem(target, inputs, options, wrt)
    if not problem.arrays:
        raise TypeError(
            f"{problem.title} was given no float64 array and has no parameters; expected an array "
            "to differentiate. If x holds whole numbers by mistake, write x.astype('float64')"
        )

    rng = np.random.default_rng([seed, *STREAM])
    v = _draw_v(problem, rng)
    y, gradients, broken = check_rules(problem, v)
    floor = _smallest_scale(y, gradients)

    def compare(name: str, gradient: np.ndarray) -> tuple[TensorReport, bool, str]:
        probe = Probe(problem, name, gradient, y, v, floor, tolerance, complex_tolerance)
        tensor = probe.check(rng, max_entries, directions)
        return tensor, tensor.passes(tolerance, complex_tolerance), probe.not_analytic

    tensors, broken_by_tensors, not_analytic = _compare_tensors(problem, gradients, compare)
    broken += broken_by_tensors
    numbers = numbers_of(target) | numbers_of(options)
    evidence = Evidence(inputs=problem.arrays, numbers=numbers, dy=v, y=y)
    tensors = name_errors(problem, gradients, tensors, evidence, tolerance, complex_tolerance)
    truth = {**gradients, "y": y}
    of_plain, broken_in_float32 = check_float32(problem, v, truth, isinstance(target, Layer))
    if not (training or any(isinstance(x, np.random.Generator) for x in inputs)):
        broken += broken_in_float32  # a generator may draw other numbers in float32
    twins: list[TwinReport] = []
    if isinstance(target, Layer):
        if not training:
            broken += check_call(target, inputs, y, mask=mask, types=types)
        twins, broken_by_twin = _compare_twin(target, inputs, new_context, v, truth, of_plain)
        broken += broken_by_twin
    report = GradcheckReport(
        title=problem.title,
        tensors=tensors,
        broken_rules=broken,
        tolerance=tolerance,
        complex_tolerance=complex_tolerance,
        not_analytic=not_analytic,
        twins=tuple(twins),
    )
    if not report.passed:
        raise GradcheckError(report)
    return report


def _draw_v(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Return the random v in L = sum(y * v)."""
    v = np.asarray(rng.normal(size=np.shape(problem.forward()[0])))
    if v.size == 0:
        raise ValueError(
            f"{problem.title} returned shape {v.shape}, so there is nothing to check; expected at "
            "least one sample"
        )
    return v


def _smallest_scale(y: np.ndarray, gradients: Results) -> float:
    """Return the least that an error is measured against.

    If a gradient is exactly 0, its difference is only rounding, about eps |y| / h. So errors are
    also measured against the other tensors' gradients and against y.
    """
    largest = max((np.abs(g).max(initial=0.0) for g in gradients.values()), default=0.0)
    return float(max(1e-3 * largest, 1e-4 * np.abs(y).max(initial=0.0)))


def _compare_tensors(
    problem: Problem,
    gradients: Results,
    compare: Callable[[str, np.ndarray], tuple[TensorReport, bool, str]],
) -> tuple[list[TensorReport], list[str], str]:
    """Compare all gradients with differences; None is compared as zeros.

    `compare` returns, of a name and a gradient, the report, whether it passes, and why there is no
    complex step. Returns the reports, the broken rules, and why there is no complex step.
    """
    tensors: list[TensorReport] = []
    broken: list[str] = []
    not_analytic = ""
    for name, array in problem.arrays.items():
        gradient = gradients.get(name, np.zeros(array.shape))
        if gradient.shape != array.shape:
            broken.append(f"the gradient of {name} has shape {gradient.shape}, not {array.shape}")
            continue
        tensor, passes, reason = compare(name, gradient)
        if name not in gradients and not passes:  # y depends on it
            broken.append(f"the backward pass returned None as the gradient of {name}")
            continue
        tensors.append(tensor)
        not_analytic = not_analytic or reason
    if tensors and all(tensor.no_derivative == math.prod(tensor.shape) for tensor in tensors):
        broken.append("nothing was checked: no entry has a derivative. Pass other values")
    return tensors, broken, not_analytic


def _compare_twin(
    layer: Layer,
    inputs: tuple[Any, ...],
    new_context: Callable[[], Context],
    v: np.ndarray,
    truth: Results,
    of_plain: float | None,
) -> tuple[list[TwinReport], list[str]]:
    """Compare a layer's fast twin, if it has one, with it; return reports and broken rules."""
    twin = faster(Layer, layer)
    if twin is None:
        return [], []
    reports, broken = check_twin(
        layer_problem(layer, inputs, new_context, twin), v, truth, of_plain
    )
    return reports, [f"twin: {rule}" for rule in broken]


def _require_layer_arguments(
    layer: Layer, inputs: tuple[Any, ...], wrt: Sequence[str] | None, options: dict[str, Any]
) -> None:
    if len(inputs) != (n := layer.n_inputs):
        inputs_passed = f"{len(inputs)} input{'s' * (len(inputs) != 1)}"
        kind = type(layer).__name__
        expected = f"one, x, because {kind} has one input. A layer with two has n_inputs = 2"
        if n == 2:
            expected = f"two, a and b, because {kind} has two: gradcheck(layer, a, b)"
        raise TypeError(f"got {inputs_passed}; expected {expected}")
    unused = [*options, *(["wrt"] if wrt is not None else [])]
    if unused:
        raise TypeError(
            f"got {', '.join(unused)}; expected nothing that only functions take. A layer is "
            "checked for its inputs and all of its parameters, with mask, types and training"
        )
