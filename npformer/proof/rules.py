"""The rules of the protocol that a backward pass must keep.

It may be called twice, it changes neither its arguments nor its cache, and it is right even if the
forward pass was called again in between.
"""

from typing import Any

import numpy as np

from npformer.proof.problem import Problem


def check_rules(
    problem: Problem, v: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray], list[str]]:
    """Return y, the gradients for dy = v, and the rules that were broken."""
    broken = []
    y, cache = problem.forward()
    y = np.array(y)  # a copy: y may be the very array that is changed below
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
    changed = not problem.unchanged()
    _run_elsewhere(problem)  # must not affect the first cache
    if differ():
        broken.append("applied twice, the second forward pass spoilt the first one's cache")
    if changed or not problem.unchanged():
        broken.append("a pass changed an input or a parameter")
    return y, gradients, broken


def gradients_of(problem: Problem, dy: np.ndarray, cache: Any) -> dict[str, np.ndarray]:
    """Return copies of the gradients that are not None."""
    found = problem.backward(dy, cache)
    return {name: np.array(gradient) for name, gradient in found.items() if gradient is not None}


def _run_elsewhere(problem: Problem) -> None:
    """Run the forward pass on other values, and restore the original ones."""
    arrays = list(zip(problem.arrays.values(), problem.originals, strict=False))
    try:
        for x, _ in arrays:
            x += 0.1 * np.cos(np.arange(x.size)).reshape(x.shape)
        try:
            problem.forward()
        except Exception:  # not defined there, such as log(x) below 0: stay nearer
            for x, original in arrays:
                x[...] = original * (1.0 + 1e-3 * np.cos(np.arange(x.size)).reshape(x.shape))
            problem.forward()
    finally:
        for x, original in arrays:
            x[...] = original
