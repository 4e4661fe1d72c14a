"""The rules of the protocol that a backward pass must keep.

It may be called twice, it changes neither its arguments nor its cache nor what was returned before,
it adds to the sums of gradients, it is right even if the forward pass was called again in between,
and it takes dy in any memory layout. A layer that is called gives what its forward pass gives.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from inspect import signature
from typing import Any

import numpy as np

from npformer.core import Layer
from npformer.proof.problem import Problem, one_output
from npformer.proof.results import TOLERANCES, Results, difference, gradients_of, has_nan


def check_rules(problem: Problem, v: np.ndarray) -> tuple[np.ndarray, Results, list[str]]:
    """Return y, the gradients for dy = v, and the rules that were broken."""
    broken = []
    returned, cache = problem.forward()
    y = np.array(returned)  # a copy: y may be the very array that is changed below
    if not np.isfinite(y).all():
        broken.append("the forward pass gave NaN or infinity")
    dy = v.copy()
    gradients = gradients_of(problem, dy, cache)

    def differ() -> bool:
        again = gradients_of(problem, dy, cache)
        return not all(np.array_equal(gradients[n], again[n], equal_nan=True) for n in gradients)

    if not np.array_equal(dy, v):
        broken.append("the backward pass changed its dy")
        dy[...] = v
    if differ():
        broken.append("the backward pass called twice gave two results: it changes its cache")
    if not np.array_equal(problem.forward()[0], y, equal_nan=True):
        broken.append("the forward pass called twice gave two results")
    changed = not problem.has_original_values()
    _run_elsewhere(problem)  # must not affect the first cache
    spoilt = differ()
    if not spoilt:
        _run_on_other_arrays(problem)
        spoilt = differ()
    if spoilt:
        broken.append("applied twice, the second forward pass spoilt the first one's cache")
    if not np.array_equal(returned, y, equal_nan=True):
        broken.append("the forward pass called again changed the y that it returned before")
    if changed or not problem.has_original_values():
        broken.append("a pass changed an input or a parameter")
    if not broken and not has_nan(gradients):  # else the same would be found again
        broken += filter(
            None, (_check_layout(problem, v, cache, gradients, how) for how in LAYOUTS)
        )
        broken += _check_sums(problem, v, cache, gradients)
    return y, gradients, broken


def check_call(
    layer: Layer, inputs: tuple[Any, ...], y: np.ndarray, **options: Any
) -> Iterator[str]:
    """Yield what is wrong if a user's call at evaluation does not give what `forward` gives."""
    sequence_options = {name: value for name, value in options.items() if value is not None}
    call = type(layer).__call__
    of_one = call is Layer.__call__ and len(inputs) > 1
    if of_one or not sequence_options.keys() <= signature(call).parameters.keys():
        return  # it has no such call
    try:
        result, _ = one_output(layer(*deepcopy(inputs), **sequence_options), None)
    except (TypeError, ValueError) as problem:
        yield f"called as a user calls it, it raises {type(problem).__name__}: {problem}"
        return
    error, _ = difference("float64", {"y": np.asarray(result)}, {"y": y})
    if not error <= TOLERANCES["float64"]:
        yield f"called as a user calls it, it does not give what forward gives: {error:.1e} apart"


def _check_sums(problem: Problem, v: np.ndarray, cache: Any, gradients: Results) -> list[str]:
    """Return what is wrong if backward passes follow each other, as over parts of a batch."""
    broken = []
    returned = problem.backward(v.copy(), cache)
    problem.backward(np.array(-v), cache)
    if not all(np.array_equal(returned[name], gradients[name]) for name in gradients):
        broken.append("the backward pass called again changed the gradients that it returned")
    # Sums that begin with the size of the gradients lose few of their digits.
    start = max((float(np.abs(g).max(initial=0.0)) for g in gradients.values()), default=0.0) or 1.0
    sums = problem.backward(v.copy(), cache, start)
    sums = {name: np.asarray(sums[name]) for name in gradients}
    error, name = difference("float64", sums, gradients)
    if not error <= TOLERANCES["float64"]:
        broken.append(f"the backward pass does not add to the gradient of {name}: it overwrites it")
    return broken


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "with gaps between its entries": lambda v: np.repeat(v, 2, axis=-1)[..., ::2],
    "in Fortran order": lambda v: np.array(v, order="F"),
    "that is read-only": lambda v: np.broadcast_to(v, v.shape),
}
"""Other memory layouts of dy."""


def _check_layout(problem: Problem, v: np.ndarray, cache: Any, gradients: Results, how: str) -> str:
    """Return what is wrong for a dy in this memory layout; "" if nothing is."""
    if not v.ndim:
        return ""
    dy = LAYOUTS[how](v)
    try:
        gradients_for_dy = gradients_of(problem, dy, cache)
    except Exception as failure:  # in a user's code
        return f"for a dy {how}, the backward pass raises {type(failure).__name__}: {failure}"
    if not np.array_equal(dy, v):
        return f"the backward pass changed its dy, {how}"
    error, name = difference("float64", gradients_for_dy, gradients)
    if error <= TOLERANCES["float64"]:  # sums in another order may round differently
        return ""
    return f"for a dy {how}, the backward pass gives another gradient of {name}"


def _run_elsewhere(problem: Problem) -> None:
    """Run the forward pass on other values of the same arrays, and restore the original ones."""
    try:
        with problem.moved(move):
            problem.forward()
    except Exception:  # not defined there, such as log(x) below 0: stay nearer
        with problem.moved(small_move):
            problem.forward()


def _run_on_other_arrays(problem: Problem) -> None:
    """Run the forward pass on other arrays with other values and ids.

    A layer that keeps its input itself, not a copy, in place of a cache would find it unchanged
    after `_run_elsewhere`, which restores the values of the same array.
    """
    try:
        with problem.convert_arrays(lambda x: x + move(x), other_ids=True) as other:
            other.forward()
    except Exception:  # not defined there
        with problem.convert_arrays(lambda x: x + small_move(x)) as other:
            other.forward()


def move(x: np.ndarray) -> np.ndarray:
    """Return a step to other values."""
    return np.asarray(0.1 * np.cos(np.arange(x.size)).reshape(x.shape))


def small_move(x: np.ndarray) -> np.ndarray:
    """Return a step to other values that changes no sign."""
    return np.asarray(1e-2 * x * move(x))
