"""Why the gradient of an input is wrong: seen by differences at other values of the weights."""

from collections.abc import Sequence

import numpy as np

from npformer.proof.evidence import Evidence
from npformer.proof.naming import MOST_ENTRIES, differentiate
from npformer.proof.problem import Problem
from npformer.proof.results import gradients_of

CLEARLY_NOT_ZERO = 1e-6
"""A derivative that is larger is no rounding error."""


def find_late_gradients(problem: Problem, inputs: Sequence[str], v: np.ndarray) -> list[str]:
    """Return a note for each wrong gradient of an input that is right for the updated weights.

    `inputs` are those whose gradients are wrong. The backward pass updates the weights by their
    gradients.
    """
    if not inputs:
        return []
    _, cache = problem.forward()
    gradients = gradients_of(problem, v, cache)
    updated = {
        name: array - gradients[name]
        for name, array in problem.arrays.items()
        if name in gradients and name not in problem.inputs
    }
    with problem.at(updated):
        derivatives = _derivatives(problem, inputs, v)
    return [
        f"{name}: its gradient is computed with the weights after their update, not with those of "
        "the forward pass"
        for name in inputs
        if np.allclose(gradients[name], derivatives[name], rtol=1e-4, equal_nan=True)
    ]


def find_missing_paths(problem: Problem, inputs: Sequence[str], v: np.ndarray) -> list[str]:
    """Return a note for each wrong gradient of an input whose path around all matrices is lost.

    With all matrices at 0, y depends on x only around them, as by a residual connection. If the
    backward pass then returns 0, it forgets that path.
    """
    zeros = {
        name: np.zeros(array.shape)
        for name, array in problem.arrays.items()
        if name not in problem.inputs and array.ndim > 1
    }
    if not inputs or not zeros:
        return []
    with problem.at(zeros):
        _, cache = problem.forward()
        gradients = gradients_of(problem, v, cache)
        derivatives = _derivatives(problem, inputs, v)
    notes = []
    for name in inputs:
        depends = np.abs(np.nan_to_num(derivatives[name])).max() > CLEARLY_NOT_ZERO
        if depends and name in gradients and not gradients[name].any():
            notes.append(
                f"{name}: with all matrices at 0 its gradient is 0, though y depends on it: the "
                "path around them, a residual connection, is missing in the backward pass"
            )
    return notes


def _derivatives(problem: Problem, names: Sequence[str], v: np.ndarray) -> dict[str, np.ndarray]:
    """Return the derivatives of sum(y * v) for some arrays, by differences."""
    y, _ = problem.forward()
    evidence = Evidence(dy=v, y=np.array(y))
    return {name: differentiate(problem, name, evidence, most=MOST_ENTRIES)[0] for name in names}
