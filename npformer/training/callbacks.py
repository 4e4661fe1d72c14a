"""Callback and TrainingState: how your own code watches a training, and what it sees."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, to_numpy
from npformer.optim import Adam
from npformer.trainable import SequenceClassifier
from npformer.training.evaluation import Evaluation
from npformer.training.history import History

RESERVED = ("finished", "interrupted", "terminated", "error")
"""Values of `History.stopped` that only `fit` sets."""


@dataclass(frozen=True, eq=False)
class TrainingState:
    """The state of a training, which `fit` passes to its callbacks.

    There is one object for the whole training, and `fit` keeps it up to date. No attribute can be
    assigned, but what they hold may be changed in place, such as ``optimizer.lr``.

    Attributes
    ----------
    model : SequenceClassifier
    optimizer : Adam
    history : History
        Of the epochs so far.
    epochs, n_steps : int
        The number of epochs asked for, and of steps in an epoch.
    epoch, step_in_epoch : int
        Counted from 1; 0 before the first.
    step : int
        Counted from 1; continues from the steps that the optimizer has taken before.
    rows : int array or None
        Indices into the training data of the samples in the step's batch, with several ranks of
        those that this rank computes. None outside of a step.
    gradients : Gradients or None
        Of the step: before clipping in `Callback.before_update`, after it in `Callback.after_step`.
        The next step overwrites them. None outside of a step.
    evaluation, best_epoch : Evaluation and int, or None
        The latest evaluation on the validation data, and the best epoch so far.
    rank, n_ranks : int
        The number of this process among those that train the model together, from 0 on, and how
        many there are: callbacks run on each of them. 0 and 1 without a communicator.
    """

    model: SequenceClassifier = field(repr=False)
    optimizer: Adam = field(repr=False)
    history: History = field(repr=False)
    epochs: int
    n_steps: int
    rank: int = 0
    n_ranks: int = 1
    epoch: int = 0
    step: int = 0
    step_in_epoch: int = 0
    rows: np.ndarray | None = field(default=None, repr=False)
    gradients: Gradients | None = field(default=None, repr=False)
    evaluation: Evaluation | None = None
    best_epoch: int | None = None
    _loss: Array | float = field(default=math.nan, repr=False)
    _over: bool = field(default=False, repr=False)  # no further step follows, on any rank
    _reason: str | None = field(default=None, repr=False)

    @property
    def loss(self) -> float:
        """The mean loss of the step's batch, before its update; NaN before the first step.

        Reading it waits for a GPU; `History.train_loss` has the mean of each epoch.
        """
        if not isinstance(self._loss, float):
            self._set(_loss=float(to_numpy(self._loss)))
        return float(self._loss)

    @property
    def stopping(self) -> str | None:
        """The reason that was given to `stop`; None if the training goes on."""
        return self._reason

    def stop(self, reason: str = "callback") -> None:
        """End the training after the current step.

        If that step is the last of its epoch, the epoch is still evaluated and recorded in the
        history; otherwise the epoch is not recorded. The best weights are put back as usual.
        `reason` is a word for `History.stopped` that `fit` does not use itself; the first counts.
        """
        if not isinstance(reason, str):
            raise TypeError(
                f"reason is {reason!r}; expected a word for history.stopped, such as 'time is up'"
            )
        if not reason or reason in RESERVED:
            raise ValueError(
                f"reason is {reason!r}; expected a word of your own for history.stopped: "
                f"{', '.join(map(repr, RESERVED))} are those of fit"
            )
        if self._reason is None:
            self._set(_reason=reason)

    def _set(self, **changes: Any) -> None:
        """Change the state; only `fit` does so."""
        for name, value in changes.items():
            object.__setattr__(self, name, value)


class Callback:
    """Base class of callbacks: override the methods that you need.

    `fit` calls each method with the state of the training, for several callbacks in the order of
    the list. Before that it has checked the loss, written the history, kept the best weights and
    moved the progress bar.

    A callback may change ``state.optimizer.lr`` and settings of layers, write into
    ``state.model.parameters()``, and end the training with ``state.stop()``. It may not replace,
    freeze or unfreeze layers. An error in a callback ends the training: the best weights are put
    back, and the error reaches the caller of `fit`.
    """

    def on_start(self, state: TrainingState) -> None:
        """Called before the first step."""

    def before_update(self, state: TrainingState) -> None:
        """Called in each step, after the backward pass and before clipping and the update.

        ``state.gradients`` may be changed in place.
        """

    def after_step(self, state: TrainingState) -> None:
        """Called after each step."""

    def after_epoch(self, state: TrainingState) -> None:
        """Called after each complete epoch and its evaluation."""

    def on_end(self, state: TrainingState) -> None:
        """Called at the end, with the best weights put back; ``state.history.stopped`` says why.

        If `on_start` succeeded, this is called after an error or Ctrl-C too: close files here.
        """

    def state_dict(self) -> Any:
        """Return what the callback has to know if the training goes on from a checkpoint.

        Plain values, ready for JSON; None if there is nothing.
        """
        return None

    def load_state_dict(self, state: Any) -> None:
        """Take over what `state_dict` returned; called before `on_start`."""
