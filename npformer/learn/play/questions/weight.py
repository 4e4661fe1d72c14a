"""One weight: its gradient by the pass written by hand, and by two other ways; Adam's step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Context, Gradients, checks, to_numpy
from npformer.core.inputs import arrays_of, within
from npformer.learn.play.questions.step import one_of
from npformer.learn.play.state import Now
from npformer.optim.adam import adam_update
from npformer.proof import complex_step
from npformer.proof.problem import parameters_as

SIZES = np.geomspace(1e-12, 1e-1, 23)
"""Steps of central differences."""

FEW = 8
"""Samples of a batch: each step runs them twice, and the training waits meanwhile."""


class Loss:
    """The loss of a copy of the model for some samples, as a function of its weights in float64."""

    def __init__(self, now: Now, rows: slice, model: Any) -> None:
        self.model = model
        inputs, y, masks = now.work.sample(rows)
        batch = self.model.batch(inputs, y, masks)
        self.inputs = tuple(
            replace(each, x=each.x.astype("float64")) if each.x.dtype.kind == "f" else each
            for each in batch.inputs
        )
        self.y = batch.y

    def forward(self) -> tuple[Any, Any]:
        """Return the loss and what the backward pass needs."""
        context = within(self.inputs, Context())
        outputs, cache = self.model.forward(*arrays_of(self.inputs), context)
        loss, loss_cache = self.model.loss.forward(outputs, self.y)
        return loss, (cache, loss_cache)

    def gradients(self) -> Gradients:
        """Return the gradients of all weights, by the backward pass."""
        found, (cache, loss_cache) = Gradients(self.model), self.forward()[1]
        self.model.backward(self.model.loss.backward(1.0, loss_cache), cache, found)
        return found


def weight(
    now: Now, name: str, index: Sequence[int], sample: int = 0, batch: bool = False
) -> dict[str, Any]:
    """Return what is known of one weight, for the loss of one sample or of a few.

    The batch's samples are the first ones to look at.
    """
    checks.flag("batch", batch)
    rows = slice(0, min(FEW, len(now.work))) if batch else one_of(now, sample)
    model = now.plain
    trained = model.trainable()
    checks.choice("name", name, trained)
    parameter = trained[name]
    at = _checked_index(index, parameter.shape)
    with parameters_as(model, lambda flat: to_numpy(flat).astype("float64")):
        loss = Loss(now, rows, model)
        value = float(parameter.value[at])
        gradient = float(loss.gradients()[name][at])
        differences = []
        for h in SIZES.tolist():
            found = _central(loss, parameter, at, h)
            differences.append({"h": h, "value": found, "error": found - gradient})
        exact, why = _complex(loss, parameter, at)
    return {
        "value": value,
        "gradient": gradient,
        "differences": differences,
        "complex_step": exact,
        "no_complex_step": why,
        "adam": _adam(now.training.optimizer, name, at, value, gradient),
    }


def _checked_index(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    fits = isinstance(index, list | tuple) and len(index) == len(shape)
    if not fits or any(type(i) is not int or i not in range(n) for i, n in zip(index, shape)):  # noqa: B905
        raise ValueError(f"index is {index!r}; expected a place in an array of shape {shape}")
    return tuple(index)


def _central(loss: Loss, parameter: Any, at: tuple[int, ...], h: float) -> float:
    """Return (loss(w + h) - loss(w - h)) / 2h."""
    before, sides = parameter.value[at], []
    for step in (h, -h):
        parameter.value[at] = before + step
        sides.append(float(loss.forward()[0]))
    parameter.value[at] = before
    return (sides[0] - sides[1]) / (2.0 * h)


def _complex(loss: Loss, parameter: Any, at: tuple[int, ...]) -> tuple[float | None, str | None]:
    """Return the derivative by the complex step, or why there is none."""
    direction = np.zeros(parameter.shape)
    direction[at] = 1.0
    try:
        with parameters_as(loss.model, complex_step.guarded):
            found = complex_step.derivative(loss.forward, parameter.value, direction)
    except complex_step.NotAnalytic as reason:
        return None, f"The complex step does not apply here: {reason}."
    return float(found), None


def _adam(
    adam: Any, name: str, at: tuple[int, ...], value: float, gradient: float
) -> dict[str, float]:
    """Return Adam's moments of a weight with this gradient, and the step that follows."""
    _, moments = adam.state()
    theta, g, m, v = (
        np.array([float(x)])
        for x in (value, gradient, moments[f"m.{name}"][at], moments[f"v.{name}"][at])
    )
    settings: dict[str, Any] = {"lr": adam.current_lr(), "betas": adam.betas, "eps": adam.eps}
    adam_update(theta, g, m, v, t=adam.steps + 1, **settings)
    after = float(theta[0])
    return {"m": float(m[0]), "v": float(v[0]), "step": after - value, "after": after}
