"""Callbacks: how code watches a training, what it sees, and what `fit` can call."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, describe, to_numpy
from npformer.core.support.builders import check_takes
from npformer.core.support.wording import did_you_mean
from npformer.models.trainable import Model
from npformer.optim import Optimizer
from npformer.training.evaluation import Evaluation
from npformer.training.history import History

RESERVED = ("finished", "interrupted", "terminated", "error")
"""Values of `History.stopped` that only `fit` sets."""


@dataclass
class Now:
    """Where a training is, with the batch, the gradients and the loss of its latest step."""

    epoch: int = 0
    step_in_epoch: int = 0
    step: int = 0
    rows: np.ndarray | None = None
    gradients: Gradients | None = None
    loss: Array | float = math.nan
    has_targets: bool = True  # whether any target counts in the loss, which is 0 otherwise
    shared_by: str = ""  # who computed the step
    signal: bool = False  # whether a signal ends the training
    over: bool = False  # no further step follows, on any rank


@dataclass(frozen=True, eq=False, repr=False)
class TrainingState:
    """The state of a training, which `fit` passes to its callbacks, and keeps up to date.

    Attributes cannot be assigned, but what they hold may be changed, such as ``optimizer.lr``.

    Attributes
    ----------
    model : Model
    optimizer : Optimizer
    history : History
        Of the epochs so far.
    epochs, n_steps : int
        The number of epochs requested, and of steps in an epoch.
    epoch, step_in_epoch : int
        Counted from 1; 0 before the first.
    step : int
        Counted from 1; continues from the steps that the optimizer has taken before.
    rows : int array or None
        Indices into the training data of the samples in the step's batch; with several ranks, only
        of those that this rank computes. None outside a step.
    gradients : Gradients or None
        Of the step: before clipping in `Callback.before_update`, after it in `Callback.after_step`.
        The next step overwrites them. None outside a step.
    evaluation, best_epoch : Evaluation and int, or None
        The latest evaluation on the validation data, and the best epoch so far.
    stopping : str or None
        The reason that was given to `stop`.
    rank, n_ranks : int
        The number of this process, from 0, among those that train the model together, and how many
        there are: callbacks run on each of them. 0 and 1 without a communicator.
    """

    model: Model
    optimizer: Optimizer
    history: History
    epochs: int
    n_steps: int
    rank: int = 0
    n_ranks: int = 1
    evaluation: Evaluation | None = field(default=None, init=False)
    best_epoch: int | None = field(default=None, init=False)
    _now: Now = field(default_factory=Now, init=False)
    stopping: str | None = field(default=None, init=False)

    @property
    def epoch(self) -> int:
        """The number of the epoch, counted from 1; 0 before the first."""
        return self._now.epoch

    @property
    def step_in_epoch(self) -> int:
        """The number of the step in its epoch, counted from 1; 0 before the first."""
        return self._now.step_in_epoch

    @property
    def step(self) -> int:
        """The number of the step, counted from 1, with those that the optimizer took before."""
        return self._now.step

    @property
    def rows(self) -> np.ndarray | None:
        """The samples in the step's batch, as indices into the training data."""
        return self._now.rows

    @property
    def gradients(self) -> Gradients | None:
        """The gradients of the step."""
        return self._now.gradients

    @property
    def loss(self) -> float:
        """The mean loss of the step's batch, before its update; NaN before the first step.

        Reading it waits for a GPU; `History.train_loss` has the mean of each epoch.
        """
        loss = self._now.loss
        if type(loss) is not float:
            loss = float(to_numpy(loss))
            self._now.loss = loss  # so that it is converted once a step
        return loss

    def stop(self, reason: str = "callback") -> None:
        """End the training after the current step.

        If that step is the last of its epoch, the epoch is still evaluated and recorded in the
        history; otherwise the epoch is not recorded. The best weights are put back as usual.
        `reason` goes into `History.stopped`; `fit`'s own words are refused. The first call counts.
        """
        if not isinstance(reason, str) or not reason or reason in RESERVED:
            error = ValueError if isinstance(reason, str) else TypeError
            raise error(
                f"reason is {describe(reason)}; expected a reason of your own for "
                f"history.stopped, such as 'time is up': {', '.join(map(repr, RESERVED))} are "
                "reserved for fit"
            )
        if self.stopping is None:
            self._set(stopping=reason)

    def __repr__(self) -> str:
        names = "epoch", "epochs", "step_in_epoch", "n_steps", "step", "best_epoch", "evaluation"
        return f"TrainingState({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def _set(self, **changes: Any) -> None:
        """Change attributes, which nobody can assign; only `fit` calls this."""
        for name, value in changes.items():
            object.__setattr__(self, name, value)


class Callback:
    """Base class of callbacks: override the methods that you need.

    `fit` calls each method with the state of the training, on several callbacks in the order of the
    list. Its own callbacks are in the same list: those that check the loss, write the history, keep
    the best weights and move the progress bar come before yours, checkpoints and signals after.

    A callback may change ``state.optimizer.lr`` and settings of layers, write into
    ``state.model.parameters()``, and end the training with ``state.stop()``. It may not replace,
    freeze or unfreeze layers. An error in a callback ends the training: the best weights are put
    back, and the error reaches the caller of `fit`.
    """

    def on_start(self, state: TrainingState) -> None:
        """Called before the first step."""

    def before_epoch(self, state: TrainingState) -> None:
        """Called before the first step of an epoch, but not on resuming in the middle of one.

        ``state.epoch`` is the epoch that begins.
        """

    def before_update(self, state: TrainingState) -> None:
        """Called in each step, after the backward pass and before clipping and the update.

        ``state.gradients`` may be changed in place.
        """

    def after_step(self, state: TrainingState) -> None:
        """Called after each step."""

    def after_epoch(self, state: TrainingState) -> None:
        """Called after each complete epoch and its evaluation."""

    def after_training(self, state: TrainingState) -> None:
        """Called after the last step, with its weights, unless an error ended the training."""

    def on_end(self, state: TrainingState) -> None:
        """Called at the end, after the best weights are put back; see ``state.history.stopped``.

        If `on_start` succeeded, this is called after an error or Ctrl-C too: close files here.
        """

    def state_dict(self) -> Any:
        """Return what the callback needs if the training resumes from a checkpoint.

        Plain values, ready for JSON, and NumPy arrays; None if it needs nothing.
        """

    def load_state_dict(self, state: Any) -> None:
        """Restore what `state_dict` returned; called before `on_start`."""


HOOK_PREFIXES = ("on_", "before_", "after_")
HOOKS = [name for name in vars(Callback) if name.startswith(HOOK_PREFIXES)]

Function = Callable[[TrainingState], object]
"""A plain function; it is called after each epoch."""


class AfterEpoch(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def after_epoch(self, state: TrainingState) -> None:
        """Call the function."""
        self.function(state)


def check_callbacks(callbacks: Sequence[Callback | Function]) -> list[Callback]:
    """Return the callbacks, with plain functions wrapped; refuse what `fit` could not call."""
    if not isinstance(callbacks, list | tuple):
        raise TypeError(
            f"callbacks is {describe(callbacks)}; expected a list of npformer.Callback objects "
            "and functions. Write callbacks=[...] around a single one"
        )
    return [_check_callback(f"callbacks[{k}]", callback) for k, callback in enumerate(callbacks)]


def _check_callback(name: str, callback: object) -> Callback:
    if isinstance(callback, type):
        raise TypeError(
            f"{name} is {describe(callback)}; expected an object. Write {callback.__name__}(...)"
        )
    if isinstance(callback, Callback):
        _check_hooks(name, callback)
        return callback
    if not callable(callback):
        raise TypeError(
            f"{name} is {describe(callback)}; expected an npformer.Callback, or a function that "
            "is called with the state after each epoch. Derive the class from npformer.Callback"
        )
    check_takes(name, callback, 1, "the state alone", "one argument: (state)")
    return AfterEpoch(callback)


def _check_hooks(name: str, callback: Callback) -> None:
    """Raise TypeError for a method that looks like a hook and is none, or takes something else."""
    for method in dir(callback):
        looks_like_a_hook = method.startswith(HOOK_PREFIXES) and method not in HOOKS
        if looks_like_a_hook and callable(getattr(type(callback), method, None)):
            hint = did_you_mean(method, HOOKS) or "."
            raise TypeError(
                f"{name}, {describe(callback)}, has {method}, which fit does not call; it "
                f"calls {', '.join(HOOKS)}{hint} Write _{method} if it is a helper of yours"
            )
    for hook in HOOKS:
        method_of_callback = getattr(callback, hook)
        check_takes(
            f"{hook} of {name}",
            method_of_callback,
            1,
            "the state alone",
            "one argument: (self, state)",
        )


def check_needs_no_gradients(callbacks: Sequence[Callback]) -> None:
    """Raise ValueError for a callback that would see, or change, gradients that are sharded."""
    for callback in callbacks:
        if type(callback).before_update is not Callback.before_update:
            raise ValueError(
                f"shard_moments is True and {describe(callback)} has before_update, but no rank "
                "has all gradients; expected one of the two. Leave shard_moments out"
            )
