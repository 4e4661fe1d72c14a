"""Checks of a model and an optimizer that `fit` and `evaluate` are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npformer.core import Array, Parameters, checks, described
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
            advice = f"A {kind} has methods of its own, such as fit"
        checks.instance(name, model, Model, advice)
    checks.instance(f"loss of {type(model).__name__}", model.loss, Loss, EXAMPLE)
    if model.n_inputs not in (1, 2):
        kind = type(model).__name__
        raise ValueError(f"n_inputs of {kind} is {described(model.n_inputs)}; expected 1 or 2")
    if model.targets_of not in (None, *range(model.n_inputs)):
        kind = type(model).__name__
        raise ValueError(
            f"targets_of of {kind} is {described(model.targets_of)}, and n_inputs is "
            f"{model.n_inputs}; expected None, or which input's tokens have targets, from 0"
        )


OTHER_MODEL = (
    "optimizer's parameters are not this model's; expected exactly the model's own arrays. "
    "After loading, copying or moving a model make a new one: Adam(model.parameters())"
)
CHANGED_MODEL = (
    "the model's parameters are no longer the optimizer's: during the training, a layer was "
    "replaced or a parameter frozen. Expected no change until it ends: change the model before "
    "fit, or call fit again"
)


def check_trains(
    theirs: Mapping[str, Array], ours: Parameters, otherwise: str = OTHER_MODEL
) -> None:
    """Raise ValueError unless an optimizer's parameters are a model's own, not copies of them."""
    if isinstance(theirs, Parameters) and theirs.named == ours.named:
        return  # the usual case
    if list(theirs) != list(ours) or any(theirs[name] is not ours[name] for name in ours):
        raise ValueError(otherwise)
