"""Checks of a model that `fit` and `evaluate` are given."""

from __future__ import annotations

from typing import Any

from npformer.core import checks, describe
from npformer.models.losses import Loss
from npformer.models.trainable import Model


def check_nothing_misplaced(misplaced: tuple[Any, ...]) -> None:
    """Raise TypeError for targets that were given beside the data, as some libraries want it."""
    if misplaced:
        raise TypeError(
            f"fit was given {2 + len(misplaced)} arguments without a name; expected two, the model "
            "and its data, with targets and a mask in one tuple: fit(model, (x, y)), or "
            "fit(model, (x, y, mask))"
        )


EXAMPLE = "npformer.losses.MeanSquaredError() is one"
"""Advice for a model whose loss is something else."""


def check_model(name: str, model: Model) -> None:
    """Raise TypeError or ValueError for a layer that cannot be trained."""
    if not isinstance(model, Model):
        kind = type(model).__name__
        advice = (
            "SequenceClassifier is one, and has a loss. Derive your layer from Model "
            "(docs/extending/model.md), or write the loop yourself: forward, a loss of "
            "npformer.functional, backward, Adam.step"
        )
        if callable(getattr(model, "fit", None)):
            advice = f"A {kind} has its own methods, such as fit"
        checks.instance(name, model, Model, advice)
    checks.instance(f"loss of {type(model).__name__}", model.loss, Loss, EXAMPLE)
    if model.n_inputs not in (1, 2):
        kind = type(model).__name__
        raise ValueError(f"n_inputs of {kind} is {describe(model.n_inputs)}; expected 1 or 2")
    if model.targets_of not in (None, *range(model.n_inputs)):
        kind = type(model).__name__
        raise ValueError(
            f"targets_of of {kind} is {describe(model.targets_of)}, and n_inputs is "
            f"{model.n_inputs}; expected None, or which input's tokens have targets, from 0"
        )
