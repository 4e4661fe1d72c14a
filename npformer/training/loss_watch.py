"""LossWatch: when a loss is not finite, the training stops with an error that names the cause."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Array, array_module, explained_memory_error, to_numpy
from npformer.core.inputs import as_given, names_of
from npformer.training.arguments import Task
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.distributed import Communicator
from npformer.training.inspection.non_finite import first_non_finite, non_finite_parameter
from npformer.training.trainable import Model

LOSS_ITSELF = "the loss itself (every layer's output is finite at evaluation)"
"""Named in place of a tensor if all tensors are finite."""


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite.

    Attributes
    ----------
    step : int
        Counted from 1.
    tensor : str
        The first tensor, in the order of computation, that is not finite.
    """

    def __init__(self, step: int, tensor: str, notes: str, loss: str = "the loss") -> None:
        super().__init__(
            f"{loss} is not finite at step {step}; the first tensor that holds NaN or infinity "
            f"is {tensor}. Use a smaller lr, a warm-up or clip_norm=1.0, and look for NaN in the "
            f"data. {notes}"
        )
        self.step = step
        self.tensor = tensor


@dataclass
class LossWatch(Callback):
    """Reads and checks the losses of steps, several at once because reading waits for a GPU.

    Attributes
    ----------
    of_epoch : list of float
        The losses of the current epoch that have been read so far.
    """

    task: Task
    every: int
    ranks: Communicator
    of_epoch: list[float] = field(default_factory=list)
    _unread: list[tuple[Array, int, Array]] = field(default_factory=list)

    def before_update(self, state: TrainingState) -> None:
        """Note the loss of a step; read the losses if enough are unread."""
        self._unread.append((state._now.loss, state.step, state.rows))
        if len(self._unread) >= self.every:
            self.read(state)

    def after_epoch(self, state: TrainingState) -> None:
        """Check the validation loss."""
        found = state.evaluation
        if found is None or self.task.held_out is None or math.isfinite(found.loss):
            return
        tensor = non_finite_tensor(state.model, self.task.held_out)
        raise NonFiniteLossError(state.step, tensor, _weights_after(state), "the validation loss")

    def after_training(self, state: TrainingState) -> None:
        """Check the last losses, and the weights if no loss was computed after the last update."""
        self.read(state)
        if state.best_epoch is None:
            self.check_weights(state)

    def state_dict(self) -> Any:
        """Return the losses of the epoch; `read` has been called."""
        return list(self.of_epoch)

    def load_state_dict(self, state: Any) -> None:
        """Restore the losses of the epoch."""
        self.of_epoch[:] = state

    def epoch_mean(self, state: TrainingState) -> float:
        """Return the mean loss of the epoch that has just ended, and start the next."""
        self.read(state)
        mean = float(np.mean(self.of_epoch))
        self.of_epoch.clear()
        return mean

    def check_weights(self, state: TrainingState) -> None:
        """Check that all weights are finite."""
        if (wrong := non_finite_parameter(state.model)) is not None:
            raise NonFiniteLossError(state.step, wrong, _weights_after(state), "the update")

    def read(self, state: TrainingState) -> None:
        """Read and check all unread losses, into `of_epoch`."""
        if not self._unread:
            return
        first = self._unread[0][0]
        values = to_numpy(array_module(first).stack([loss for loss, _, _ in self._unread]))
        for value, (_, step, rows) in zip(values.tolist(), self._unread, strict=True):
            if not math.isfinite(value):
                found = self._non_finite_tensor(state.model, rows)
                notes = _weights_after(state)
                updates = state.optimizer.steps
                if updates >= step and not found.startswith("the input "):
                    notes += (
                        f". This was found {updates - step + 1} updates later, when NaN had "
                        "spread; check_every=1 finds the tensor where it began"
                    )
                raise NonFiniteLossError(step, found, notes)
            self.of_epoch.append(value)
        self._unread.clear()

    def _non_finite_tensor(self, model: Model, rows: np.ndarray) -> str:
        """Return the name of the first tensor that is not finite, and of the rank that has it."""
        with explained_memory_error(model.backend, len(rows)):
            of_ranks = self.ranks.gather(non_finite_tensor(model, self.task.samples.of_rows(rows)))
        rank = next((k for k, name in enumerate(of_ranks) if name != LOSS_ITSELF), 0)
        return f"{of_ranks[rank]} on rank {rank}" if len(of_ranks) > 1 else of_ranks[rank]


def _weights_after(state: TrainingState) -> str:
    """Return a sentence on the weights that the model has after the error."""
    if state.best_epoch is None:
        return "No best weights were kept, so the model is as it was when this was found"
    return f"The model has the best weights so far, those of epoch {state.best_epoch}"


def non_finite_tensor(model: Model, samples: Any) -> str:
    """Return the name of the first tensor with NaN or infinity when a model evaluates samples."""
    pieces = [slice(start, start + 256) for start in range(0, len(samples), 256)]
    for piece in pieces:
        inputs = samples.of_rows(piece).inputs
        for name, each in zip(names_of(inputs), inputs, strict=True):
            kept = each.x if each.padding is None else each.x[each.mask]  # padding may hold NaN
            if kept.dtype.kind == "f" and not np.isfinite(kept).all():
                return f"the input {name}"
    with np.errstate(all="ignore"):
        for piece in pieces:
            if found := first_non_finite(model, *as_given(samples.of_rows(piece).inputs)):
                return found
    return LOSS_ITSELF
