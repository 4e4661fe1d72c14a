"""What `fit` is told: checked, and made into what a training needs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import checks, use_precision
from npformer.engine.tree import tree_of
from npformer.engine.updates import device_generator
from npformer.optim import Adam
from npformer.training.callbacks import TrainingState


@dataclass(frozen=True)
class Options:
    """Arguments of `fit`, as they were given."""

    epochs: int
    batch_size: int
    clip_norm: float | None
    patience: int | None
    workers: int | str
    processes: bool | str
    micro_batch: int | None
    check_every: int | None
    precision: str | None
    masks: str
    on_interrupt: str


def check_options(
    options: Options, validated: bool, optimizer: object, settings: dict[str, Any]
) -> None:
    """Check what can be checked before the data are looked at.

    Parameters
    ----------
    options : Options
    validated : bool
        Whether there is validation data.
    optimizer : object
        What was given as one.
    settings : dict
        lr, schedule and weight_decay, as they were given; None if not.
    """
    for name, value in (("epochs", options.epochs), ("batch_size", options.batch_size)):
        checks.positive(name, value)
    checks.choice("on_interrupt", options.on_interrupt, ("raise", "return"))
    checks.choice("masks", options.masks, ("host", "device"))
    if options.clip_norm is not None:
        checks.number("clip_norm", options.clip_norm, above=0.0)
    if options.patience is not None:
        checks.positive("patience", options.patience)
        if not validated:
            raise ValueError(
                f"patience is {options.patience} and there is no validation data; expected some, "
                "for an epoch is better than another there. Pass validation=(x, y), or "
                "patience=None"
            )
    if options.micro_batch is not None:
        checks.positive("micro_batch", options.micro_batch)
    if options.check_every is not None:
        checks.positive("check_every", options.check_every)
    if optimizer is not None and not isinstance(optimizer, Adam):
        raise TypeError(
            f"optimizer is {optimizer!r}; expected an npformer.Adam, such as "
            "Adam(model.parameters()), or None"
        )
    beside = [f"{name}={value!r}" for name, value in settings.items() if value is not None]
    if optimizer is not None and beside:
        raise ValueError(
            f"optimizer is given, and {' and '.join(beside)} beside it; expected one or the other, "
            "for an optimizer has its own. Pass them to Adam(...)"
        )


def optimizer_of(
    model: SequenceClassifier, optimizer: Adam | None, settings: dict[str, Any]
) -> Adam:
    """Return the optimizer that was given, if it is this model's; else make one."""
    if optimizer is None:
        given = {name: value for name, value in settings.items() if value is not None}
        return Adam(model.parameters(), **given)
    if not _trains(optimizer, model):
        raise ValueError(
            "optimizer's parameters are not this model's; expected all of them, where they are "
            "now, and no others. After loading, copying or moving a model make a new one: "
            "Adam(model.parameters())"
        )
    return optimizer


def check_still_trained(state: TrainingState) -> None:
    """Check, if the model has changed, that the optimizer still has the weights that it has now.

    Raises
    ------
    ValueError
        A layer was replaced, or something was frozen: new weights would stay as they are.
    """
    tree = tree_of(state.model)
    if tree is state._tree:
        return
    if not _trains(state.optimizer, state.model):
        raise ValueError(
            "the model's parameters are no longer the optimizer's: a layer was replaced, or "
            "something frozen, in the middle of the training. Expected the same until it ends: "
            "change the model before fit, or call fit once more"
        )
    state._set(_tree=tree)


def generator_of_dropout(model: SequenceClassifier, masks: str, rng: np.random.Generator) -> Any:
    """Return what draws dropout's masks: on the device, if that is asked for and there is one."""
    if masks == "device" and model.backend != "numpy":
        return device_generator(model.backend, int(rng.integers(1 << 63))) or rng
    return rng


def _trains(optimizer: Adam, model: SequenceClassifier) -> bool:
    """Return whether these are the very arrays of the model; equal ones do not train it."""
    theirs, ours = optimizer.parameters, model.parameters()
    return list(theirs) == list(ours) and all(theirs[name] is ours[name] for name in ours)


def _at_precision(model: SequenceClassifier, precision: str | None) -> AbstractContextManager[None]:
    """Return what to train inside of, so that products are of the precision asked for."""
    if precision is None:
        return nullcontext()
    if precision == "tf32" and model.dtype != "float32":
        raise ValueError(
            f"precision is 'tf32' and the model's dtype is {model.dtype}; expected float32, whose "
            "products TF32 rounds. Build the model with dtype='float32', or leave precision out"
        )
    return use_precision(precision, model.backend)
