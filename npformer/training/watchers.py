"""What `fit` itself watches a training with: the losses, the history, the best weights, a bar."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from npformer.core import Array, array_module, guard_computation, to_numpy
from npformer.core.support.progress_bar import progress_bar
from npformer.data.samples import Samples
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import Metric
from npformer.training.batches import Batches, batch_at_evaluation
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.evaluation import Evaluation, measure
from npformer.training.inspection.non_finite import (
    LOSS_ITSELF,
    non_finite_parameter,
    non_finite_tensor,
)
from npformer.training.single_process import Processes


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
        advice = "Use a smaller lr, a warm-up or clip_norm=1.0, and look for NaN in the data"
        if tensor.startswith("the input "):
            advice = "Samples with NaN or infinity have to be left out, or filled, before fit"
        super().__init__(
            f"{loss} is not finite at step {step}; the first tensor that holds NaN or infinity "
            f"is {tensor}. {advice}. {notes}"
        )
        self.step = step
        self.tensor = tensor


class Unread(NamedTuple):
    """The loss of a step, which may still be on a GPU, and the rows of its batch.

    Without a target the loss is 0, and says nothing.
    """

    loss: Array
    step: int
    rows: Any
    has_targets: bool


@dataclass
class Recorder(Callback):
    """Writes the history, and checks that losses and weights are finite.

    It reads the losses of several steps at once, because reading waits for a GPU.
    """

    batches: Batches
    every: int | None  # steps between readings; None: 1 on a CPU, and 50 on a GPU
    micro_batch: int | None
    processes: Processes
    _unread: list[Unread] = field(default_factory=list)
    _last_rows: np.ndarray | None = None  # of the latest batch
    _losses: list[float] = field(default_factory=list)  # that were read, of steps with targets
    _began: float = field(default_factory=time.perf_counter)  # when the epoch began

    def before_epoch(self, state: TrainingState) -> None:
        """Start the clock."""
        self._began = time.perf_counter()

    def before_update(self, state: TrainingState) -> None:
        """Note the loss of a step; read the losses if enough are unread."""
        now = state._now
        self._unread.append(Unread(now.loss, now.step, now.rows, now.has_targets))
        self._last_rows = now.rows
        steps_between_readings = 1 if state.model.backend == "numpy" else 50
        if len(self._unread) >= (self.every or steps_between_readings):
            self.read(state)

    def after_step(self, state: TrainingState) -> None:
        """Record who computed the step and, if it was the last, the epoch."""
        workers = state.history.workers
        shared_by = state._now.shared_by
        workers[shared_by] = workers.get(shared_by, 0) + 1
        if state.step_in_epoch == state.n_steps:
            self.read(state)
            lr = state.optimizer.lr * state.optimizer.schedule(state.optimizer.steps)
            mean = float(np.mean(self._losses)) if self._losses else math.nan
            state.history.train_loss.append(mean)
            state.history.lr.append(float(lr))  # before a callback changes it
            state.history.seconds.append(time.perf_counter() - self._began)
            self._losses.clear()

    def after_epoch(self, state: TrainingState) -> None:
        """Evaluate the model on the validation data, if there are any, and record it."""
        task = self.batches.task
        if task.held_out is None:
            return
        evaluation = self._evaluate(state, task.held_out, task.metric)
        state._set(evaluation=evaluation)
        if not math.isfinite(evaluation.loss):
            tensor = non_finite_tensor(state.model, task.held_out)
            notes = weights_after(state)
            raise NonFiniteLossError(state.step, tensor, notes, "the validation loss")
        state.history.validation_loss.append(evaluation.loss)
        if not math.isnan(evaluation.accuracy):
            state.history.validation_accuracy.append(evaluation.accuracy)
        value = evaluation.value(task.metric)
        if not math.isnan(value):
            state.history.validation_metric.append(value)

    def after_training(self, state: TrainingState) -> None:
        """Check the last losses, and what the last update left if these weights are kept."""
        self.read(state)
        if state.best_epoch is None:
            self.check_weights(state)
            self._check_last_batch(state)

    def on_end(self, state: TrainingState) -> None:
        """Record which epoch the model's weights come from."""
        epoch_is_complete = len(state.history.train_loss) == state.epoch > 0
        latest_epoch = state.epoch if epoch_is_complete else None
        state.history.best_epoch = state.best_epoch or latest_epoch

    def state_dict(self) -> Any:
        """Return the losses of the epoch, which have been read, and how long it has taken."""
        return {"losses": [*self._losses], "seconds": time.perf_counter() - self._began}

    def load_state_dict(self, state: Any) -> None:
        """Go on with an epoch, as if it had begun that long ago."""
        self._losses = list(state["losses"])
        self._began = time.perf_counter() - float(state["seconds"])

    def check_weights(self, state: TrainingState) -> None:
        """Check that all weights are finite."""
        parameter = non_finite_parameter(state.model)
        if parameter is not None:
            raise NonFiniteLossError(state.step, parameter, weights_after(state), "the update")

    def _check_last_batch(self, state: TrainingState) -> None:
        """Check the loss of the last batch after its update, if nothing was validated since.

        Finite weights may be so large that every output is NaN.
        """
        if self._last_rows is None or self.batches.task.held_out is not None:
            return
        samples = self.batches.task.samples.subset(self._last_rows)
        loss = self._evaluate(state, samples, metric="accuracy").loss
        if not math.isfinite(loss):
            tensor = self._non_finite_tensor(state.model, self._last_rows)
            notes = weights_after(state)
            raise NonFiniteLossError(state.step, tensor, notes, "the loss after the last update")

    def _evaluate(self, state: TrainingState, samples: Samples, metric: Metric) -> Evaluation:
        """Return the model's evaluation on some samples."""
        task = self.batches.task
        n = batch_at_evaluation(self.batches.batch_size, self.micro_batch)
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows it
            return measure(state.model, samples, task.loss, n, self.processes, metric)

    def read(self, state: TrainingState) -> None:
        """Read and check all unread losses."""
        if not self._unread:
            return
        losses = [unread.loss for unread in self._unread]
        values = to_numpy(array_module(losses[0]).stack(losses)).tolist()
        for value, unread in zip(values, self._unread, strict=True):
            if not math.isfinite(value):
                raise self._non_finite_loss(state, unread)
            if unread.has_targets:
                self._losses.append(value)
        self._unread.clear()

    def _non_finite_loss(self, state: TrainingState, unread: Unread) -> NonFiniteLossError:
        """Return the error for a loss that is not finite."""
        tensor = self._non_finite_tensor(state.model, unread.rows)
        notes = weights_after(state)
        updates = state.optimizer.steps
        if updates >= unread.step and not tensor.startswith("the input "):
            notes += (
                f". This was found {updates - unread.step + 1} updates later, when NaN had "
                "spread; check_every=1 finds the tensor where it began"
            )
        return NonFiniteLossError(unread.step, tensor, notes)

    def _non_finite_tensor(self, model: Model, rows: np.ndarray) -> str:
        """Return the name of the first tensor that is not finite, and of the rank that has it."""
        with guard_computation(model.backend, len(rows)):
            batch = self.batches.task.samples.select(rows)
            tensors_by_rank = self.processes.gather(non_finite_tensor(model, batch))
        for rank, tensor in enumerate(tensors_by_rank):
            if tensor != LOSS_ITSELF:
                return f"{tensor} on rank {rank}" if len(tensors_by_rank) > 1 else tensor
        return f"{LOSS_ITSELF} on rank 0" if len(tensors_by_rank) > 1 else LOSS_ITSELF


def weights_after(state: TrainingState) -> str:
    """Return a sentence on the weights that the model has after an error."""
    if state.best_epoch is None:
        return "No best weights were kept, so the model is as it was when this was found"
    return f"The model has the best weights so far, those of epoch {state.best_epoch}"


class ProgressBar(Callback):
    """Shows all steps of the training, and the losses of the last epoch."""

    def on_start(self, state: TrainingState) -> None:
        """Draw the bar."""
        total = state.epochs * state.n_steps
        steps_done = max(state.epoch - 1, 0) * state.n_steps + state.step_in_epoch
        self._bar = progress_bar(True, total=total, initial=steps_done, unit="step", leave=True)

    def after_step(self, state: TrainingState) -> None:
        """Move the bar."""
        self._bar.update(1)

    def after_epoch(self, state: TrainingState) -> None:
        """Show the epoch's training loss, and its validation accuracy, or loss if it has none."""
        figures = {"loss": f"{state.history.train_loss[-1]:.4f}"}
        evaluation = state.evaluation
        if evaluation is not None:
            has_accuracy = not math.isnan(evaluation.accuracy)
            value = evaluation.accuracy if has_accuracy else evaluation.loss
            figures["validation"] = f"{value:.4f}"
        self._bar.set_postfix(figures)

    def on_end(self, state: TrainingState) -> None:
        """Leave the bar where it is."""
        self._bar.close()


class EarlyStopping(Callback):
    """Keeps the weights of the best epoch on the host, and puts them back at the end.

    With `patience`, it stops the training after that many epochs without a better one.
    """

    def __init__(self, patience: int | None, metric: Metric = "accuracy") -> None:
        self.patience = patience
        self.metric = metric
        self.weights: dict[str, np.ndarray] = {}
        self._score: tuple[float, float] | None = None

    def on_start(self, state: TrainingState) -> None:
        """Stop at once if patience had already run out at the checkpoint resumed from."""
        if len(state.history.validation_loss) == state.epoch:  # no epoch is under way
            self._stop_if_too_late(state)

    def after_epoch(self, state: TrainingState) -> None:
        """Keep the model's weights if they are better than those kept."""
        evaluation = state.evaluation
        if evaluation is None:
            return
        score = self._score_of(evaluation)
        if self._score is None or score > self._score:
            self._score = score
            self.weights = {
                name: to_numpy(parameter).copy()
                for name, parameter in state.model.parameters().items()
            }
            state._set(best_epoch=state.epoch)
        self._stop_if_too_late(state)

    def _score_of(self, evaluation: Evaluation) -> tuple[float, float]:
        """Return the metric and, among equals, the negative loss: the larger, the better."""
        value = -evaluation.loss if self.metric == "loss" else evaluation.value(self.metric)
        return 0.0 if math.isnan(value) else value, -evaluation.loss

    def _stop_if_too_late(self, state: TrainingState) -> None:
        if self.patience is not None and state.epoch - (state.best_epoch or 0) >= self.patience:
            state.stop("patience")

    def on_end(self, state: TrainingState) -> None:
        """Put the best weights back."""
        for name, parameter in state.model.parameters().items():
            if name in self.weights:
                parameter[...] = array_module(parameter).asarray(self.weights[name])

    def state_dict(self) -> dict[str, Any]:
        """Return the best score, and the weights that had it."""
        return {"score": self._score, "weights": self.weights}

    def load_state_dict(self, state: Any) -> None:
        """Restore the best score and its weights."""
        self.weights = state["weights"]
        self._score = None
        if state["score"] is not None:
            value, negative_loss = state["score"]
            self._score = float(value), float(negative_loss)
