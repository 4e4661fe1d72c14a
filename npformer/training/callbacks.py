"""Callback: what looks on while `fit` trains, and the state that it is shown."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import Array, Gradients, to_numpy
from npformer.optim import Adam
from npformer.training.evaluation import Evaluation
from npformer.training.history import History

RESERVED = ("finished", "interrupted", "error")
"""What only `fit` says of an end."""


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Where a training is: what `fit` shows its callbacks.

    One object for the whole training: it changes as the training goes on. Nothing can be assigned
    to it. What it holds may be changed in place: the model's parameters, ``optimizer.lr``.

    Attributes
    ----------
    model : SequenceClassifier
    optimizer : Adam
    history : History
        Of the epochs so far.
    epochs : int
        How many there are to be.
    n_steps : int
        Steps of an epoch.
    epoch : int
        Counted from 1; 0 before the first.
    step : int
        Counted from 1, and on from the steps that the optimizer had taken before.
    step_in_epoch : int
        Counted from 1; 0 before the first.
    rows : int array or None
        The samples of the step's batch, by their place in the training data. None outside of a
        step.
    gradients : Gradients or None
        Of the step: before clipping in `Callback.before_update`, after it in `Callback.after_step`.
        The next step overwrites them. None outside of a step.
    evaluation : Evaluation or None
        The last look at the validation data; None before the first, or if there are none.
    best_epoch : int or None
        The epoch that was best on the validation data so far; None as above.
    """

    model: SequenceClassifier = field(repr=False)
    optimizer: Adam = field(repr=False)
    history: History = field(repr=False)
    epochs: int
    n_steps: int
    epoch: int = 0
    step: int = 0
    step_in_epoch: int = 0
    rows: np.ndarray | None = field(default=None, repr=False)
    gradients: Gradients | None = field(default=None, repr=False)
    evaluation: Evaluation | None = None
    best_epoch: int | None = None
    _loss: Array | float = field(default=math.nan, repr=False)
    _reason: str | None = field(default=None, repr=False)
    _tree: Any = field(default=None, repr=False)  # the model, as it was last checked
    _began: float = field(default=0.0, repr=False)  # the epoch, on time.perf_counter

    @property
    def loss(self) -> float:
        """The mean loss of the step's batch, before its update; NaN before the first step.

        On a GPU, reading it waits for the device: at each step that costs time, now and then it
        does not. `History.train_loss` has the mean of an epoch.
        """
        if not isinstance(self._loss, float):
            self._set(_loss=float(to_numpy(self._loss)))
        return float(self._loss)

    @property
    def stopping(self) -> str | None:
        """Why the training is about to end; None if it goes on."""
        return self._reason

    def stop(self, reason: str = "callback") -> None:
        """End the training after the present step.

        After the last step of an epoch, the epoch is brought to its end: it is evaluated and in the
        history. An epoch that is cut short is not. The model ends with its best weights, as always;
        without validation data, or in the first epoch, with those that it has then.

        Parameters
        ----------
        reason : str
            What `History.stopped` is to be. The first one that is given counts.

        Raises
        ------
        TypeError
            The reason is not a word.
        ValueError
            It is one of those that `fit` has for other ends.
        """
        if not isinstance(reason, str):
            raise TypeError(
                f"reason is {reason!r}; expected a word for history.stopped, such as 'time is up'"
            )
        if not reason or reason in RESERVED:
            raise ValueError(
                f"reason is {reason!r}; expected a word of your own for history.stopped, for fit "
                f"says {', '.join(map(repr, RESERVED))} of other ends"
            )
        if self._reason is None:
            self._set(_reason=reason)

    def _set(self, **changes: Any) -> None:
        """Change the state. Only `fit` does; whoever assigns gets an error."""
        for name, value in changes.items():
            object.__setattr__(self, name, value)


class Callback:
    """What looks on while `fit` trains: derive from it, and write the methods that you need.

    `fit` calls them with the state of the training. The loss has been looked at by then, the
    history is written, the best weights are kept and the progress bar is moved. Several callbacks
    are called in the order of the list.

    A callback may change ``state.optimizer.lr``, write into ``state.model.parameters()``, and end
    the training with ``state.stop()``. Settings of layers may be changed too; layers themselves,
    and what is trained, stay as they are until the training ends. An error in a callback ends the
    training; the best weights are put back and the error reaches the caller of `fit`.
    """

    def on_start(self, state: TrainingState) -> None:
        """Before the first step."""

    def before_update(self, state: TrainingState) -> None:
        """In each step, when loss and gradients are there and the weights are still the old ones.

        ``state.gradients`` may be changed in place; clipping comes afterwards.
        """

    def after_step(self, state: TrainingState) -> None:
        """After each step."""

    def after_epoch(self, state: TrainingState) -> None:
        """After each whole epoch, when it has been evaluated."""

    def on_end(self, state: TrainingState) -> None:
        """At the end, with the best weights put back; ``state.history.stopped`` says which end.

        Also after an error or Ctrl-C, if `on_start` went well: here is where to close files.
        """


HOOKS = ("on_start", "before_update", "after_step", "after_epoch", "on_end")

Function = Callable[[TrainingState], object]
"""A plain function is called after each epoch."""


class AfterEpoch(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def after_epoch(self, state: TrainingState) -> None:
        """Call the function."""
        self.function(state)


class InOrder(Callback):
    """Several callbacks as one."""

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        self.callbacks = list(callbacks)
        self._started: list[Callback] = []

    def on_start(self, state: TrainingState) -> None:
        """Start them, and note which have been: the others have nothing to end."""
        for each in self.callbacks:
            each.on_start(state)
            self._started.append(each)

    def before_update(self, state: TrainingState) -> None:
        """Call all of them."""
        for each in self.callbacks:
            each.before_update(state)

    def after_step(self, state: TrainingState) -> None:
        """Call all of them."""
        for each in self.callbacks:
            each.after_step(state)

    def after_epoch(self, state: TrainingState) -> None:
        """Call all of them."""
        for each in self.callbacks:
            each.after_epoch(state)

    def on_end(self, state: TrainingState) -> None:
        """Call all that were started, also those that come after one that raises."""
        with ExitStack() as stack:
            for each in reversed(self._started):  # a stack: the first is called first
                stack.callback(each.on_end, state)


def checked_callbacks(callbacks: Sequence[Callback | Function]) -> list[Callback]:
    """Return callbacks, plain functions among them wrapped, after a look at each.

    What would not be called, or could not, is found before the first step.
    """
    if not isinstance(callbacks, list | tuple):
        raise TypeError(
            f"callbacks is {_named(callbacks)}; expected a list of npformer.Callback objects and "
            "functions. Write callbacks=[...] around a single one"
        )
    return [_checked(f"callbacks[{k}]", each) for k, each in enumerate(callbacks)]


def _checked(name: str, callback: object) -> Callback:
    if isinstance(callback, type):
        raise TypeError(
            f"{name} is the class {callback.__name__}; expected an object of it. Write "
            f"{callback.__name__}(...)"
        )
    if isinstance(callback, Callback):
        for method in dir(callback):
            hook_like = method.startswith(("on_", "before_", "after_")) and method not in HOOKS
            if hook_like and callable(getattr(type(callback), method, None)):
                close = get_close_matches(method, HOOKS, n=1)
                hint = f"Did you mean {close[0]}? " if close else ""
                raise TypeError(
                    f"{name}, {_named(callback)}, has {method}, which fit does not call; it calls "
                    f"{', '.join(HOOKS)}. {hint}Write _{method} if it is a helper of yours"
                )
        for hook in HOOKS:
            _check_takes_state(f"{hook} of {name}", getattr(callback, hook), "(self, state)")
        return callback
    if not callable(callback):
        raise TypeError(
            f"{name} is {_named(callback)}; expected an npformer.Callback, or a function that is "
            "called with the state after each epoch. Derive the class from npformer.Callback"
        )
    _check_takes_state(name, callback, "(state)")
    return AfterEpoch(callback)


def _check_takes_state(name: str, function: Any, expected: str) -> None:
    """Check that a function can be called with one argument, as far as that can be known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some of those written in C do not tell
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise TypeError(
            f"{name} cannot be called with the state alone ({error}); expected one argument. "
            f"Define it with {expected}"
        ) from None


def _named(value: object) -> str:
    """Return a function's or object's name for a message; the class, where its repr says less."""
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    plain = isinstance(value, str | int | float | None)
    return repr(value) if plain else f"a {type(value).__name__}"
