"""Checks of `fit`'s arguments, and what they are made into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from inspect import unwrap
from typing import Any

from npformer.core import Array, Parameters, Seed, checks, described, use_precision
from npformer.core.support.explained_errors import located_errors
from npformer.engine.worker_counts import check_workers
from npformer.models.losses import Loss
from npformer.models.trainable import Model
from npformer.optim import Adam, Optimizer, schedule_for
from npformer.training.batches import WAYS
from npformer.training.storage.checkpoint_folder import checked_folder


def check_together(name: str, misplaced: tuple[Any, ...]) -> None:
    """Raise TypeError for targets that were given beside the data, as some libraries want it."""
    if misplaced:
        raise TypeError(
            f"fit was given {2 + len(misplaced)} arguments without a name; expected two, the model "
            "and its data, with targets and a mask in one tuple: fit(model, (x, y)), or "
            "fit(model, (x, y, mask))"
        )


def check_seed(name: str, seed: Seed) -> None:
    """Raise TypeError for no seed: nobody could train like that again."""
    if seed is None:
        raise TypeError(
            f"{name} is None; expected a whole number of at least 0 or a numpy.random.Generator: "
            "nobody could train like that again"
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
    if (n := model.n_inputs) not in (1, 2) or model.targets_of not in (None, *range(n)):
        kind = type(model).__name__
        if n not in (1, 2):
            raise ValueError(f"n_inputs of {kind} is {described(n)}; expected 1 or 2")
        raise ValueError(
            f"targets_of of {kind} is {described(model.targets_of)}, and n_inputs is {n}; expected "
            "None, or which input's tokens have targets, from 0"
        )


CHECKS: dict[str, Callable[[str, Any], object]] = {
    "misplaced": check_together,
    "model": check_model,
    "seed": check_seed,
    **dict.fromkeys(("epochs", "batch_size", "accumulate", "every"), checks.positive),
    **dict.fromkeys(("patience", "micro_batch", "check_every"), checks.positive),
    "workers": lambda name, workers: check_workers(workers),
    "clip_norm": partial(checks.number, above=0.0),
    "checkpoint": checked_folder,
    **dict.fromkeys(("shard_moments", "progress", "resume"), checks.flag),
    "on_interrupt": partial(checks.choice, choices=("raise", "return")),
    "masks": partial(checks.choice, choices=("host", "device")),
    "batches": partial(checks.choice, choices=("auto", *WAYS)),
}
"""What each of these arguments of `fit` must be."""


def check_arguments(fit: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check those of `fit`'s arguments that need no data, unless left out."""
    defaults = unwrap(fit).__kwdefaults__  # not its signature, which a tool may change
    for name, check in CHECKS.items():
        if given[name] is not defaults.get(name, fit):
            check(name, given[name])
    if given["patience"] is not None and given["validation"] is None:
        raise ValueError(
            f"patience is {given['patience']} and there is no validation data; expected some, "
            "because it decides which epoch is better. Pass validation=(x, y), or patience=None"
        )
    if given["checkpoint"] is None and (given["resume"] or given["every"] != 1):
        which = "resume=True" if given["resume"] else f"every={given['every']}"
        raise ValueError(
            f"{which} without a checkpoint; expected the folder of the training as well: "
            "checkpoint='runs/mine'"
        )


OF_ADAM = ("lr", "schedule", "weight_decay", "no_decay", "layer_decay")
"""Which arguments of `fit` are settings of the Adam that it makes; None leaves Adam's default."""


def optimizer_for(
    model: Model, optimizer: Optimizer | None, steps: int, arguments: Mapping[str, Any]
) -> Optimizer:
    """Return the given optimizer, or an Adam with those of its settings that are not None.

    The training has `steps` steps, and so has a schedule that is given by its name.
    """
    given = {name: arguments[name] for name in OF_ADAM if arguments[name] is not None}
    if not model.parameters():
        raise ValueError(
            "every parameter of the model is frozen, so there is nothing to train; expected at "
            "least one that is not: model.unfreeze('classify.*')"
        )
    if optimizer is None:
        if isinstance(given.get("schedule"), str):
            with located_errors(f"in a training of {steps} steps, "):
                given["schedule"] = schedule_for(given["schedule"], steps)
        return Adam(model.parameters(), **given)
    checks.instance("optimizer", optimizer, Optimizer, "Write Adam(model.parameters())")
    if given:
        both = " and ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(
            f"optimizer is given together with {both}; expected only one of the two, because an "
            "optimizer has its own settings. Pass them to Adam(...)"
        )
    check_trains(optimizer.parameters, model.parameters())
    return optimizer


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


def precision_of(model: Model, precision: str) -> AbstractContextManager[Any]:
    """Return a context in which matrix products have a precision."""
    if str(precision) == "tf32" and model.dtype != "float32":
        raise ValueError(
            f"precision is 'tf32' and the model's dtype is {model.dtype}; expected float32, whose "
            "products TF32 rounds. Build the model with dtype='float32', or leave precision out"
        )
    return use_precision(precision, model.backend)
