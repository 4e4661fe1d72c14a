"""CallbackList: the callbacks that `fit` was given, checked and called in order."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from npformer.core import checks, described
from npformer.training.callbacks import Callback, TrainingState

HOOKS = ("on_start", "before_update", "after_step", "after_epoch", "on_end")

Function = Callable[[TrainingState], object]
"""A plain function; it is called after each epoch."""


class CallbackList:
    """All callbacks of a training: those of `fit`, then those of the user."""

    def __init__(self, of_fit: Iterable[Callback], of_user: list[Callback]) -> None:
        self.of_user = of_user
        self.callbacks = [*of_fit, *of_user]
        self._started: list[Callback] = []

    def start(self, state: TrainingState) -> None:
        """Call `on_start` of each, and note which ones succeeded: only these are ended."""
        for each in self.callbacks:
            each.on_start(state)
            self._started.append(each)

    def call(self, hook: str, state: TrainingState) -> None:
        """Call one method of each."""
        for each in self.callbacks:
            getattr(each, hook)(state)

    def end(self, state: TrainingState) -> None:
        """Call `on_end` of each that has started, even if that of an earlier one raises."""
        with ExitStack() as stack:
            for each in reversed(self._started):  # a stack: the last one pushed is called first
                stack.callback(each.on_end, state)


class AfterEpoch(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def after_epoch(self, state: TrainingState) -> None:
        """Call the function."""
        self.function(state)


def checked_callbacks(callbacks: Sequence[Callback | Function]) -> list[Callback]:
    """Return the callbacks, with plain functions wrapped; refuse what `fit` could not call."""
    if not isinstance(callbacks, list | tuple):
        raise TypeError(
            f"callbacks is {described(callbacks)}; expected a list of npformer.Callback objects "
            "and functions. Write callbacks=[...] around a single one"
        )
    return [_checked(f"callbacks[{k}]", each) for k, each in enumerate(callbacks)]


def _checked(name: str, callback: object) -> Callback:
    if isinstance(callback, type):
        raise TypeError(
            f"{name} is {described(callback)}; expected an object of it. Write "
            f"{callback.__name__}(...)"
        )
    if isinstance(callback, Callback):
        for method in dir(callback):
            hook_like = method.startswith(("on_", "before_", "after_")) and method not in HOOKS
            if hook_like and callable(getattr(type(callback), method, None)):
                hint = checks.did_you_mean(method, HOOKS) or "."
                raise TypeError(
                    f"{name}, {described(callback)}, has {method}, which fit does not call; it "
                    f"calls {', '.join(HOOKS)}{hint} Write _{method} if it is a helper of yours"
                )
        for hook in HOOKS:
            _check_takes_state(f"{hook} of {name}", getattr(callback, hook), "(self, state)")
        return callback
    if not callable(callback):
        raise TypeError(
            f"{name} is {described(callback)}; expected an npformer.Callback, or a function that "
            "is called with the state after each epoch. Derive the class from npformer.Callback"
        )
    _check_takes_state(name, callback, "(state)")
    return AfterEpoch(callback)


def _check_takes_state(name: str, function: Any, expected: str) -> None:
    """Check that a function can be called with one argument, if its signature is known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise TypeError(
            f"{name} cannot be called with the state alone ({error}); expected one argument. "
            f"Define it with {expected}"
        ) from None
