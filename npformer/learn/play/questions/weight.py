"""One weight: its gradient by the pass written by hand, and by two other ways; Adam's step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Context, Gradients, checks, to_numpy
from npformer.learn.play.questions.step import one_of
from npformer.learn.play.state import Now
from npformer.models.batch import Batch
from npformer.models.step import accumulate
from npformer.optim.adam import adam_update
from npformer.proof import complex_step
from npformer.proof.central_difference import central_difference
from npformer.proof.problem import parameters_as

SIZES = np.geomspace(1e-12, 1e-1, 23)
"""Steps of central differences."""

FEW = 8
"""Samples of a batch: each step runs them twice, and the training waits meanwhile."""


def weight(
    now: Now,
    name: str,
    index: Sequence[int],
    sample: int = 0,
    batch: bool = False,
    at: int | None = None,
) -> dict[str, Any]:
    """Return what is known of one weight, for the loss of one sample or of a few.

    The batch's samples are the first ones to look at. `at` is as in `step`: Adam's moments are
    those of now, so of an earlier step there is no "adam".
    """
    checks.flag("batch", batch)
    rows = slice(0, min(FEW, len(now.work))) if batch else one_of(now, sample)
    model = now.plain_at(at)
    trained = model.trainable()
    checks.choice("name", name, trained)
    parameter = trained[name]
    place = _check_index(index, parameter.shape)
    direction = np.zeros(parameter.shape)
    direction[place] = 1.0
    with parameters_as(model, lambda flat: to_numpy(flat).astype("float64")):
        one_batch = _convert_to_float64(model.batch(*now.work.sample(rows)))
        gradients = Gradients(model)
        loss = accumulate(model, model.loss, one_batch, Context(), gradients)
        value, gradient = float(parameter.value[place]), float(gradients[name][place])

        def run() -> tuple[Any, Any]:
            outputs, _ = model.forward(*one_batch.arrays(), one_batch.within(Context()))
            return model.loss.forward(outputs, *one_batch.targets())  # type: ignore[no-any-return]

        differences = []
        for h in SIZES.tolist():
            sides = central_difference(lambda: run()[0], parameter.value, direction, y=loss, h=h)
            slope = sides.central
            differences.append({"h": h, "value": slope, "error": slope - gradient})
        exact = why = None
        try:
            with parameters_as(model, complex_step.complex_copy):
                exact = float(complex_step.derivative(run, parameter.value, direction))
        except complex_step.NotAnalytic as reason:
            why = f"The complex step does not apply here: {reason}."
    return {
        "value": value,
        "gradient": gradient,
        "differences": differences,
        "complex_step": exact,
        "no_complex_step": why,
        "adam": None
        if at not in (None, now.training.step)
        else _adam(now.training.optimizer, name, place, value, gradient),
    }


def _check_index(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    fits = isinstance(index, list | tuple) and len(index) == len(shape)
    if not fits or any(type(i) is not int or i not in range(n) for i, n in zip(index, shape)):  # noqa: B905
        raise ValueError(f"index is {index!r}; expected a place in an array of shape {shape}")
    return tuple(index)


def _convert_to_float64(batch: Batch) -> Batch:
    """Return a batch whose vectors are in float64; ids stay as they are."""
    inputs = (
        replace(sequences, x=sequences.x.astype("float64"))
        if sequences.x.dtype.kind == "f"
        else sequences
        for sequences in batch.inputs
    )
    return replace(batch, inputs=tuple(inputs))


def _adam(
    adam: Any, name: str, at: tuple[int, ...], value: float, gradient: float
) -> dict[str, float]:
    """Return Adam's moments of a weight with this gradient, and the step that follows."""
    _, moments = adam.state()
    theta = np.array([float(value)])
    g = np.array([float(gradient)])
    m = np.array([float(moments[f"m.{name}"][at])])
    v = np.array([float(moments[f"v.{name}"][at])])
    adam_update(
        theta,
        g,
        m,
        v,
        t=adam.steps + 1,
        lr=adam.current_lr(),
        betas=adam.betas,
        eps=adam.eps,
    )
    after = float(theta[0])
    return {"m": float(m[0]), "v": float(v[0]), "step": after - value, "after": after}
