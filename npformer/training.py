"""fit: the training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from npformer import checks, initializers
from npformer.backend import Array, array_module, to_numpy
from npformer.classifier import SequenceClassifier
from npformer.functional import NO_LABEL
from npformer.initializers import Seed
from npformer.optim import Adam, Schedule, clip_by_global_norm
from npformer.trace import first_non_finite
from npformer.workers import Team

Data = Sequence[Any]
"""(x, y) or (x, y, mask), host arrays."""


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite.

    Attributes
    ----------
    step : int
        The step, counted from 1.
    tensor : str
        The first tensor, in the order of computation, that is not finite.
    """

    def __init__(self, step: int, tensor: str, kept: str) -> None:
        super().__init__(
            f"the loss is not finite at step {step}; the first tensor that holds NaN or infinity "
            f"is {tensor}. Use a smaller lr, a warm-up or clip_norm=1.0, and look for NaN in the "
            f"data. {kept}"
        )
        self.step = step
        self.tensor = tensor


@dataclass
class History:
    """What happened, one entry an epoch.

    Attributes
    ----------
    train_loss : list of float
        Mean over the epoch's steps, in training mode, in nats.
    validation_loss, validation_accuracy : list of float
        At evaluation, after the epoch. Empty without validation data.
    lr : list of float
        Learning rate of the epoch's last step.
    seconds : list of float
        Time of the epoch.
    best_epoch : int or None
        Counted from 1: the epoch whose weights the model has now.
    stopped : str
        "finished", "patience" or "interrupted".
    """

    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    stopped: str = "finished"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on some data.

    Attributes
    ----------
    loss : float
        Mean over labels, in nats, without label smoothing.
    accuracy : float
        Share of labels that were predicted right.
    labels : int
        How many there were.
    """

    loss: float
    accuracy: float
    labels: int


def evaluate(model: SequenceClassifier, data: Data, batch_size: int = 256) -> Evaluation:
    """Return loss and accuracy of a model on labelled data.

    Parameters
    ----------
    model : SequenceClassifier
    data : (x, y) or (x, y, mask)
    batch_size : int
        Samples at a time.
    """
    x, y, mask = _parts("data", data)
    probabilities = model.predict_probabilities(x, mask, batch_size).astype("float64")
    model.prepare_batch(x[:1], y[:1], None if mask is None else mask[:1])  # are labels labels?
    counted = y != NO_LABEL
    right = np.take_along_axis(probabilities, np.where(counted, y, 0)[..., None], axis=-1)[..., 0]
    smallest = np.finfo(model.dtype).tiny
    losses = -np.log(np.maximum(right, smallest))
    n = int(counted.sum())
    hits = (probabilities.argmax(axis=-1) == y) & counted
    return Evaluation(
        loss=float(losses[counted].sum() / max(n, 1)),
        accuracy=float(hits.sum() / max(n, 1)),
        labels=n,
    )


def fit(
    model: SequenceClassifier,
    data: Data,
    *,
    validation: Data | None = None,
    epochs: int = 10,
    batch_size: int = 32,
    lr: float = 1e-3,
    schedule: Schedule | None = None,
    weight_decay: float = 0.0,
    optimizer: Adam | None = None,
    clip_norm: float | None = None,
    label_smoothing: float = 0.0,
    patience: int | None = None,
    seed: Seed = 0,
    workers: int | str = "auto",
    progress: bool = True,
    check_every: int | None = None,
    on_interrupt: str = "raise",
) -> History:
    """Train a classifier, in place, and keep its best weights.

    Parameters
    ----------
    model : SequenceClassifier
    data : (x, y) or (x, y, mask)
        Host arrays; batches are drawn from them in an order that `seed` decides.
    validation : (x, y) or (x, y, mask), optional
        Looked at after each epoch. The model ends with the weights of the epoch that had the best
        accuracy there, the lower loss deciding between equals. Without it, with the last weights.
    epochs : int
        Times that all data is gone through.
    batch_size : int
        Samples a step.
    lr : float
        Learning rate of Adam.
    schedule : callable, optional
        Step, from 1, to a factor on the learning rate: see `npformer.optim`.
    weight_decay : float
        Decoupled, as in AdamW.
    optimizer : Adam, optional
        Used instead of one made from lr, schedule and weight_decay.
    clip_norm : float, optional
        Gradients are scaled so that their global norm is at most this.
    label_smoothing : float
        See `softmax_cross_entropy`.
    patience : int, optional
        Stop after so many epochs without a better one.
    seed : int or numpy.random.Generator
        Decides the order of the batches and dropout's masks: two runs of the same seed, model and
        number of workers are equal bit for bit.
    workers : int or "auto"
        CPU threads that share each batch.
    progress : bool
        Show a progress bar.
    check_every : int, optional
        Steps between two looks at the loss. Each look waits for the device, so the default is 1 on
        a CPU and 50 on a GPU.
    on_interrupt : {"raise", "return"}
        After Ctrl-C, with the best weights restored: raise KeyboardInterrupt or return.

    Returns
    -------
    history : History

    Raises
    ------
    NonFiniteLossError
        The loss is NaN or infinite; names the step and the tensor.
    """
    x, y, mask = _parts("data", data)
    if validation is not None:
        _parts("validation", validation)
        if len(validation[0]) == 0:
            raise ValueError("validation has no samples; expected at least 1, or validation=None")
    for name, value in (("epochs", epochs), ("batch_size", batch_size)):
        checks.positive(name, value)
    checks.choice("on_interrupt", on_interrupt, ("raise", "return"))
    if len(x) == 0:
        raise ValueError("data has no samples; expected at least 1")
    model.prepare_batch(x, y, mask)  # a wrong label in the last batch should not cost an epoch
    rng = initializers.generator(seed)
    if optimizer is None:
        optimizer = Adam(model.parameters(), lr=lr, weight_decay=weight_decay, schedule=schedule)
    if check_every is None:
        check_every = 1 if model.backend == "numpy" else 50
    checks.positive("check_every", check_every)

    history = History()
    best = _Best(model)
    steps = -(-len(x) // batch_size)
    bar = _progress_bar(epochs * steps, progress)
    try:
        with Team(model, workers) as team:
            for epoch in range(1, epochs + 1):
                began = time.perf_counter()
                watch = _LossWatch(model, check_every, best)
                order = rng.permutation(len(x))
                for step in range(steps):
                    rows = order[step * batch_size : (step + 1) * batch_size]
                    batch = x[rows], y[rows], None if mask is None else mask[rows]
                    loss, gradients = team.step(
                        *batch, generator=rng, label_smoothing=label_smoothing
                    )
                    watch.note(loss, optimizer.steps + 1, batch)
                    if clip_norm is not None:
                        clip_by_global_norm(gradients, clip_norm)
                    optimizer.step(gradients)
                    bar.update(1)
                history.train_loss.append(watch.mean())
                history.lr.append(optimizer.lr * optimizer.schedule(optimizer.steps))
                history.seconds.append(time.perf_counter() - began)
                shown = {"loss": f"{history.train_loss[-1]:.4f}"}
                if validation is not None:
                    found = evaluate(model, validation)
                    history.validation_loss.append(found.loss)
                    history.validation_accuracy.append(found.accuracy)
                    best.offer(epoch, found)
                    shown["validation"] = f"{found.accuracy:.4f}"
                bar.set_postfix(shown)
                if patience is not None and validation is not None and best.age(epoch) > patience:
                    history.stopped = "patience"
                    break
    except KeyboardInterrupt:
        history.stopped = "interrupted"
        if on_interrupt == "raise":
            raise
    finally:
        bar.close()
        history.best_epoch = best.restore() or len(history.train_loss) or None
    return history


def _parts(name: str, data: Data) -> tuple[Array, Array, Array | None]:
    """Return x, y and mask of some data, all of one length."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise TypeError(
            f"{name} is a {type(data).__name__}"
            + (f" of {len(data)}" if isinstance(data, tuple | list) else "")
            + "; expected (x, y) or (x, y, mask)"
        )
    x, y, mask = (*data, None)[:3]
    for part, array in (("x", x), ("y", y), ("mask", mask)):
        if array is not None and not isinstance(array, np.ndarray):
            raise TypeError(
                f"{part} in {name} is a {type(array).__name__}; expected a NumPy array. Batches "
                "are drawn on the host and uploaded one by one"
            )
        if array is not None and len(array) != len(x):
            raise ValueError(
                f"{part} in {name} has {len(array)} samples and x has {len(x)}; expected as many"
            )
    return x, y, mask


def _progress_bar(total: int, shown: bool) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, disable=not shown, unit="step", leave=True)


class _Best:
    """The best weights so far, kept on the host."""

    def __init__(self, model: SequenceClassifier) -> None:
        self.model = model
        self.epoch: int | None = None
        self._score = (-math.inf, -math.inf)
        self._weights: dict[str, np.ndarray] = {}

    def offer(self, epoch: int, found: Evaluation) -> None:
        """Keep the model's weights if they are better than those kept."""
        score = (found.accuracy, -found.loss)
        if score > self._score:
            self._score, self.epoch = score, epoch
            self._weights = {n: to_numpy(p).copy() for n, p in self.model.parameters().items()}

    def age(self, epoch: int) -> int:
        """Return how many epochs ago the best one was."""
        return epoch - (self.epoch or 0)

    def restore(self) -> int | None:
        """Put the best weights back into the model and return their epoch."""
        for name, parameter in self.model.parameters().items():
            if name in self._weights:
                parameter[...] = array_module(parameter).asarray(self._weights[name])
        return self.epoch


class _LossWatch:
    """Losses of an epoch, read in batches, for each reading waits for the device."""

    def __init__(self, model: SequenceClassifier, every: int, best: _Best) -> None:
        self.model = model
        self.every = every
        self.best = best
        self._unread: list[tuple[Array, int]] = []
        self._read: list[float] = []

    def note(self, loss: Array, step: int, batch: tuple[Array, Array, Array | None]) -> None:
        """Take a step's loss; look at all that are unread every so many steps."""
        self._unread.append((loss, step))
        if len(self._unread) >= self.every:
            self._look(batch)

    def mean(self) -> float:
        """Return the mean loss of the epoch."""
        self._look(None)
        return float(np.mean(self._read))

    def _look(self, batch: tuple[Array, Array, Array | None] | None) -> None:
        if not self._unread:
            return
        first = self._unread[0][0]
        values = to_numpy(array_module(first).stack([loss for loss, _ in self._unread]))
        for value, (_, step) in zip(values.tolist(), self._unread, strict=True):
            if not math.isfinite(value):
                raise NonFiniteLossError(step, self._culprit(batch), self._kept())
            self._read.append(value)
        self._unread.clear()

    def _culprit(self, batch: tuple[Array, Array, Array | None] | None) -> str:
        for name, array in self.model.parameters().items():
            if not np.isfinite(to_numpy(array)).all():
                return f"parameter {name}"
        if batch is not None:
            x, mask = self.model.prepare(batch[0], batch[2])
            with np.errstate(all="ignore"):
                found = first_non_finite(self.model, x, mask)
            if found is not None:
                return found
        return "the loss itself (every layer's output is finite at evaluation)"

    def _kept(self) -> str:
        if self.best.epoch is None:
            return "No epoch was finished, so the weights are those of this step"
        return f"The model has the best weights so far, those of epoch {self.best.epoch}"
