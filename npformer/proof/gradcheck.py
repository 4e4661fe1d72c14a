"""gradcheck: is a backward pass the derivative of its forward pass?

Of layers, pairs of functions, other people's objects and losses, and of modules of torch, JAX, ...

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

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from npformer.core import Context, Layer, checks
from npformer.core.dispatch import faster
from npformer.core.inputs import check_inputs, inputs_of_arrays, within
from npformer.proof.blind_spots import coinciding_sizes
from npformer.proof.comparison import Comparison, Settings
from npformer.proof.foreign.check import check_derivative, check_foreign
from npformer.proof.foreign.libraries import library_of
from npformer.proof.foreign.readings import is_derivative_pair
from npformer.proof.naming import numbers_of
from npformer.proof.pairs import (
    GENERATORS,
    has_backward,
    numbers_of_arguments,
    pair_of,
    pair_problem,
)
from npformer.proof.problem import Problem, layer_problem
from npformer.proof.report import (
    COMPLEX_TOLERANCE,
    TOLERANCE,
    GradcheckError,
    GradcheckReport,
)
from npformer.proof.results import Results, check_float32
from npformer.proof.rules import check_call, check_rules
from npformer.proof.twincheck import TwinReport, check_twin


def gradcheck(
    target: Any,
    *inputs: Any,
    params: Mapping[str, str] | None = None,
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
    target : Layer, object, function, or (function, function)
        One of

        - a layer or model of npformer, or written for it;
        - a pair (forward, backward), or a forward function with its `name_backward` in the same
          module. Forward returns (y, cache), or y alone; then backward takes dy and those arguments
          of forward, or y, that its signature names. Backward returns a tuple, list or dictionary;
        - any object with ``forward`` or ``__call__``, and ``backward``. It may keep state. Its
          gradients are found by their names: ``dW``, ``grad_W``, ``W.grad``, ``grads["W"]``, in
          what backward returns, or by the step of a backward pass that takes a learning rate;
        - a function or method that returns (loss, gradient), or a model with such a method;
        - a module or function of torch, JAX (flax, equinox), MLX, tinygrad or autograd.
    *inputs : array or any
        The arguments of the forward pass: for a layer x, or a and b if it has two inputs. Gradients
        with respect to float64 arrays are checked; whole numbers, masks and other values are only
        passed on. Each evaluation gets a fresh copy of a random generator.
    params : mapping of str to str, optional
        For objects: paths of parameters, and where their gradients are after a backward pass, such
        as ``{"W": "grad_W", "layers[0].b": "grads['b0']", "V": "return[1]"}``. By default they are
        found by their names.
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
        A gradient is wrong or the protocol is broken; the message is the report. For objects,
        losses and modules that were not written for npformer, the derivative alone decides, and
        what else they do is in the report's `protocol`.
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

    Sizes that coincide hide which of them a pass uses: a layer norm that divides by batch times
    length is right at (2, 4, 8) and wrong at (2, 5, 8). Equal values hide which of them it reads.
    The report has a note where sizes coincide. Where a derivative is 0 in each entry, any multiple
    of it would pass, so it is compared at other values, too, and the report says so. And a forward
    pass that computes the wrong function, with the right gradient of that function, always passes:
    compare its output with a formula.

    None as a gradient passes if y does not depend on that array.

    Examples
    --------
    >>> import numpy as np, npformer as nf
    >>> rng = np.random.default_rng(0)
    >>> x, W, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)
    >>> nf.gradcheck(nf.functional.linear, x, W, b).passed
    True
    """
    settings = Settings(
        seed=seed,
        tolerance=tolerance,
        complex_tolerance=complex_tolerance,
        max_entries=max_entries,
        directions=directions,
    )
    checks.flag("training", training)
    if isinstance(target, Layer):
        _require_layer_arguments(target, inputs, wrt, params, options)
        report = _check_layer(target, inputs, mask, types, training, settings)
    else:
        options = _without_none({"mask": mask, "types": types}) | options
        if not has_backward(target) or library_of(target, inputs):
            report = check_foreign(target, inputs, options, params, wrt, settings)
        elif is_derivative_pair(*pair_of(target)):
            pair = pair_of(target)
            report = check_derivative(pair, inputs, options, params, wrt, settings)
        else:
            report = _check_pair(target, inputs, options, wrt, settings)
    if not report.passed:
        raise GradcheckError(report)
    return report


def _check_layer(
    layer: Layer, inputs: tuple[Any, ...], mask: Any, types: Any, training: bool, settings: Settings
) -> GradcheckReport:
    """Check a layer, the rules of its protocol, and its fast twin."""
    mask, types = deepcopy((mask, types))  # a layer that changes them changes copies
    checked_inputs = check_inputs(inputs_of_arrays(layer, inputs, mask, types))

    def new_context() -> Context:
        generator = np.random.default_rng(settings.seed) if training else None
        return within(checked_inputs, Context(training=training, generator=generator))

    numbers = numbers_of(layer)
    problem = layer_problem(layer, inputs, new_context)
    _require_arrays(problem, inputs)
    comparison = Comparison(problem, settings)
    y, gradients, broken = check_rules(problem, comparison.v)
    comparison.run(y, gradients, numbers)
    broken += comparison.broken_by_pair()
    truth = {**gradients, "y": y}
    of_plain, broken_in_float32 = check_float32(problem, comparison.v, truth, is_layer=True)
    if not training:  # a generator may draw other numbers in float32
        broken += broken_in_float32
        broken += check_call(layer, inputs, y, mask=mask, types=types)
    twins, broken_by_twin = _compare_twin(layer, inputs, new_context, comparison.v, truth, of_plain)
    broken += broken_by_twin
    comparison.notes += coinciding_sizes({name: problem.arrays[name] for name in problem.inputs})
    return comparison.report(broken, twins=tuple(twins))


def _check_pair(
    target: Any,
    inputs: tuple[Any, ...],
    options: dict[str, Any],
    wrt: Sequence[str] | None,
    settings: Settings,
) -> GradcheckReport:
    """Check a pair of functions, and the rules of its protocol."""
    numbers = numbers_of(target) | numbers_of_arguments(target, inputs, options)
    problem = pair_problem(target, inputs, options, wrt)
    _require_arrays(problem, inputs)
    comparison = Comparison(problem, settings)
    y, gradients, broken = check_rules(problem, comparison.v)
    comparison.run(y, gradients, numbers)
    broken += comparison.broken_by_pair()
    truth = {**gradients, "y": y}
    _, broken_in_float32 = check_float32(problem, comparison.v, truth, is_layer=False)
    if not any(isinstance(x, GENERATORS) for x in inputs):  # they may draw other numbers in float32
        broken += broken_in_float32
    comparison.notes += coinciding_sizes({name: problem.arrays[name] for name in problem.inputs})
    return comparison.report(broken)


def _require_arrays(problem: Problem, inputs: tuple[Any, ...]) -> None:
    """Raise TypeError if there is nothing to differentiate with respect to."""
    if problem.arrays:
        return
    advice = "If x holds whole numbers by mistake, write x.astype('float64')"
    if any(isinstance(x, (list, tuple)) for x in inputs):
        advice = "A list is not an array: write np.array(x, dtype='float64')"
    raise TypeError(
        f"{problem.title} was given no float64 array and has no parameters; expected an array "
        f"to differentiate. {advice}"
    )


def _without_none(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


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
    layer: Layer,
    inputs: tuple[Any, ...],
    wrt: Sequence[str] | None,
    params: Mapping[str, str] | None,
    options: dict[str, Any],
) -> None:
    if len(inputs) != (n := layer.n_inputs):
        inputs_passed = f"{len(inputs)} input{'s' * (len(inputs) != 1)}"
        kind = type(layer).__name__
        expected = f"one, x, because {kind} has one input. A layer with two has n_inputs = 2"
        if n == 2:
            expected = f"two, a and b, because {kind} has two: gradcheck(layer, a, b)"
        raise TypeError(f"got {inputs_passed}; expected {expected}")
    unused = [*options, *_without_none({"wrt": wrt, "params": params})]
    if unused:
        raise TypeError(
            f"got {', '.join(unused)}; expected nothing that only functions take. A layer is "
            "checked for its inputs and all of its parameters, with mask, types and training"
        )
