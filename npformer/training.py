"""fit: the training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from npformer import checks, initializers, kernels
from npformer.backend import (
    Array,
    array_module,
    explained_memory_error,
    get_backend,
    to_numpy,
    use_precision,
)
from npformer.classifier import SequenceClassifier
from npformer.functional import NO_LABEL
from npformer.initializers import Seed
from npformer.optim import Adam, Schedule, clip_by_global_norm
from npformer.trace import first_non_finite, non_finite_parameter
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

    def __init__(self, step: int, tensor: str, notes: str, loss: str = "the loss") -> None:
        super().__init__(
            f"{loss} is not finite at step {step}; the first tensor that holds NaN or infinity "
            f"is {tensor}. Use a smaller lr, a warm-up or clip_norm=1.0, and look for NaN in the "
            f"data. {notes}"
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
        Counted from 1: the epoch whose weights the model has now; None if it was interrupted in
        the middle of one and has no best weights to go back to.
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


def evaluate(
    model: SequenceClassifier,
    data: Data,
    batch_size: int = 256,
    processes: bool | str = "auto",
) -> Evaluation:
    """Return loss and accuracy of a model on labelled data.

    Parameters
    ----------
    model : SequenceClassifier
    data : (x, y) or (x, y, mask)
        Every token is of type 0, as in `fit`.
    batch_size, processes
        As in `SequenceClassifier.predict_probabilities`.
    """
    return _measure(model, *_checked(model, "data", data), batch_size, processes)


def _measure(
    model: SequenceClassifier,
    x: Array,
    y: Array,
    mask: Array | None,
    batch_size: int,
    processes: bool | str,
) -> Evaluation:
    """Return what `evaluate` does, of data that has been checked."""
    log_p = model.in_batches(
        model.log_probabilities, x, mask, batch_size, processes=processes
    )  # [..., n_classes]
    counted = y != NO_LABEL
    if mask is not None and y.ndim == 2:
        counted &= mask  # a token of padding has no label
    right = np.take_along_axis(log_p, np.where(counted, y, 0)[..., None], axis=-1)[..., 0]
    n = int(counted.sum())
    hits = (log_p.argmax(axis=-1) == y) & counted & ~np.isnan(right)
    return Evaluation(
        loss=float(0.0 - right[counted].sum()) / max(n, 1),
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
    lr: float | None = None,
    schedule: Schedule | None = None,
    weight_decay: float | None = None,
    optimizer: Adam | None = None,
    clip_norm: float | None = None,
    label_smoothing: float = 0.0,
    patience: int | None = None,
    seed: Seed = 0,
    workers: int | str = "auto",
    processes: bool | str = "auto",
    micro_batch: int | None = None,
    progress: bool = True,
    check_every: int | None = None,
    precision: str | None = None,
    masks: str = "host",
    on_interrupt: str = "raise",
) -> History:
    """Train a classifier, in place, and keep its best weights.

    Parameters
    ----------
    model : SequenceClassifier
    data : (x, y) or (x, y, mask)
        Host arrays; batches are drawn from them in an order that `seed` decides. There is no place
        for token types: every token is of type 0. To train with types, write the loop:
        ``model.loss_and_gradients(x, y, mask, types=types)`` and ``optimizer.step(gradients)``.
    validation : (x, y) or (x, y, mask), optional
        Looked at after each epoch. The model ends with the weights of the epoch that had the best
        accuracy there, the lower loss deciding between equals. Without it, with the last weights.
    epochs : int
        Times that all data is gone through.
    batch_size : int
        Samples a step.
    lr : float, optional
        Learning rate of Adam; its own default if not given, 1e-3.
    schedule : callable, optional
        Step, from 1, to a factor on the learning rate: see `npformer.optim`.
    weight_decay : float, optional
        Decoupled, as in AdamW; none if not given.
    optimizer : Adam, optional
        Instead of lr, schedule and weight_decay: it has its own.
    clip_norm : float, optional
        Gradients are scaled so that their global norm is at most this.
    label_smoothing : float
        See `softmax_cross_entropy`.
    patience : int, optional
        Stop after so many epochs without a better one; needs validation data.
    seed : int or numpy.random.Generator
        Decides the order of the batches and dropout's masks: two runs of the same seed, model and
        number of workers are equal bit for bit. (On a GPU, with `use_kernels(False)` and token ids,
        up to rounding: CuPy's own addition at an index takes any order.)
    workers : int or "auto"
        CPU cores that share each batch, each a part of it. "auto": as many as there are, if the
        batch has enough to do for each; a copy needs less than a thread. Batches of a few long
        sequences are shared within each sequence, by threads unless `processes` is True.
    processes : bool or "auto"
        Whether workers are copies of this process, which do not take turns at the interpreter, or
        threads. For one number of workers the numbers are the same. "auto": copies on Linux and
        from the main thread; they end with the training. A lock that another thread of yours holds
        while they are made stays shut in them: if that matters, False.
    micro_batch : int, optional
        Samples that a worker computes at a time, which bounds the memory; the step is that of the
        whole batch. None: a worker's share of the batch at once.
    progress : bool
        Show a progress bar.
    check_every : int, optional
        Steps between two looks at the loss. Each look waits for the device, so the default is 1 on
        a CPU and 50 on a GPU.
    precision : {"float32", "tf32"}, optional
        How a GPU multiplies float32 arrays meanwhile, see `use_precision`. None leaves it as it is:
        float32, unless that was changed.
    masks : {"host", "device"}
        Where dropout's masks are drawn. "host": by NumPy, and uploaded, so that a seed means the
        same run on every backend. "device": on the GPU, which a large model is many times faster
        with. On a CPU the two are one.
    on_interrupt : {"raise", "return"}
        After Ctrl-C, with the best weights restored: raise KeyboardInterrupt or return.

    Returns
    -------
    history : History

    Raises
    ------
    TypeError
        Not a classifier, or data that are not NumPy arrays of its types.
    ValueError
        An option or data out of range, an optimizer beside what it would be made from, or one of
        another model.
    NonFiniteLossError
        The loss is NaN or infinite, or a weight after the last step; names the step and the tensor.
    CopyDiedError
        A worker process ended in the middle of its work.
    BatchTooLargeError
        A batch does not fit into memory; says which batch_size or micro_batch to try.
    """
    for name, value in (("epochs", epochs), ("batch_size", batch_size)):
        checks.positive(name, value)
    checks.choice("on_interrupt", on_interrupt, ("raise", "return"))
    checks.choice("masks", masks, ("host", "device"))
    if clip_norm is not None:
        checks.number("clip_norm", clip_norm, above=0.0)
    if patience is not None:
        checks.positive("patience", patience)
        if validation is None:
            raise ValueError(
                f"patience is {patience} and there is no validation data; expected some, for an "
                "epoch is better than another there. Pass validation=(x, y), or patience=None"
            )
    if micro_batch is not None:
        checks.positive("micro_batch", micro_batch)
    if optimizer is not None and not isinstance(optimizer, Adam):
        raise TypeError(
            f"optimizer is {optimizer!r}; expected an npformer.Adam, such as "
            "Adam(model.parameters()), or None"
        )
    settings: dict[str, Any] = {"lr": lr, "schedule": schedule, "weight_decay": weight_decay}
    settings = {name: value for name, value in settings.items() if value is not None}
    if optimizer is not None and settings:
        beside = " and ".join(f"{name}={value!r}" for name, value in settings.items())
        raise ValueError(
            f"optimizer is given, and {beside} beside it; expected one or the other, for an "
            "optimizer has its own. Pass them to Adam(...)"
        )
    # A wrong label in the last batch should not cost an epoch.
    x, y, mask = _checked(model, "data", data)
    held_out = None if validation is None else _checked(model, "validation", validation)
    rng = initializers.generator(seed)
    if optimizer is None:
        optimizer = Adam(model.parameters(), **settings)
    elif not _trains(optimizer, model):
        raise ValueError(
            "optimizer's parameters are not this model's; expected all of them, where they are "
            "now, and no others. After loading, copying or moving a model make a new one: "
            "Adam(model.parameters())"
        )
    if check_every is None:
        check_every = 1 if model.backend == "numpy" else 50
    checks.positive("check_every", check_every)

    drawing: Any = rng
    if masks == "device" and model.backend != "numpy":
        near = next(iter(model.parameters().values()))
        drawing = kernels.generator(near, int(rng.integers(1 << 63))) or rng

    at_once = min(batch_size, micro_batch or batch_size)
    start_feed = get_backend(model.backend).feed
    feed = None if start_feed is None else start_feed()
    history = History()
    best = _Best(model)
    steps = -(-len(x) // batch_size)
    bar = _progress_bar(epochs * steps, progress)
    try:
        # Overflow is not hushed up: the watch looks at the loss and names the tensor.
        quiet = np.errstate(over="ignore", invalid="ignore")
        team = Team(model, workers, micro_batch, feed=feed, processes=processes)
        with team, quiet, _at_precision(model, precision):
            for epoch in range(1, epochs + 1):
                began = time.perf_counter()
                watch = _LossWatch(model, (x, mask), check_every, best)
                order = rng.permutation(len(x))
                for step in range(steps):
                    rows = order[step * batch_size : (step + 1) * batch_size]
                    batch = x[rows], y[rows], None if mask is None else mask[rows]
                    with explained_memory_error(model.backend, len(rows), at_once):
                        loss, gradients = team.step(
                            *batch, generator=drawing, label_smoothing=label_smoothing
                        )
                        watch.note(loss, optimizer.steps + 1, rows)
                        if clip_norm is not None:
                            clip_by_global_norm(gradients, clip_norm)
                        optimizer.step(gradients)
                    bar.update(1)
                history.train_loss.append(watch.mean())
                history.lr.append(float(optimizer.lr * optimizer.schedule(optimizer.steps)))
                history.seconds.append(time.perf_counter() - began)
                shown = {"loss": f"{history.train_loss[-1]:.4f}"}
                if held_out is not None:
                    at_evaluation = batch_at_evaluation(batch_size, micro_batch)
                    # Each copy takes so many; and processes=True asks for copies that train.
                    by_size = "auto" if processes and workers == "auto" else False
                    found = _measure(model, *held_out, at_evaluation, by_size)
                    if not math.isfinite(found.loss):
                        culprit = _culprit(model, held_out[0], held_out[2])
                        raise NonFiniteLossError(
                            optimizer.steps, culprit, best.kept(), "the validation loss"
                        )
                    history.validation_loss.append(found.loss)
                    history.validation_accuracy.append(found.accuracy)
                    best.offer(epoch, found)
                    shown["validation"] = f"{found.accuracy:.4f}"
                bar.set_postfix(shown)
                if patience is not None and best.age(epoch) >= patience:
                    history.stopped = "patience"
                    break
            # No loss comes after the last update; without validation nothing else would tell.
            if held_out is None and (wrong := non_finite_parameter(model)) is not None:
                raise NonFiniteLossError(optimizer.steps, wrong, best.kept(), "the update")
    except KeyboardInterrupt:
        history.stopped = "interrupted"
        if on_interrupt == "raise":
            raise
    finally:
        bar.close()
        if feed is not None:
            feed.close()
        history.best_epoch = best.restore()
        if history.best_epoch is None and history.stopped != "interrupted":
            history.best_epoch = len(history.train_loss)
    return history


def batch_at_evaluation(batch_size: int, micro_batch: int | None) -> int:
    """Return how many samples to measure at a time, where training steps of this size fit.

    Without a backward pass four times as many do.

    Parameters
    ----------
    batch_size : int
    micro_batch : int or None
        As in `fit`.
    """
    return min(256, 4 * min(batch_size, micro_batch or batch_size))


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
        if isinstance(array, np.ndarray) and array.ndim == 0:
            raise ValueError(f"{part} in {name} is a single number; expected one entry a sample")
        if not isinstance(array, np.ndarray) and (part != "mask" or array is not None):
            raise TypeError(
                f"{part} in {name} is a {type(array).__name__}; expected a NumPy array. Write "
                f"numpy.asarray({part}), or npformer.to_numpy({part}) if it is on a GPU: batches "
                "are uploaded one by one"
            )
        if array is not None and len(array) != len(x):
            raise ValueError(
                f"{part} in {name} has {len(array)} samples and x has {len(x)}; expected as many"
            )
    return x, y, mask


def _checked(
    model: SequenceClassifier, name: str, data: Data, at_once: int = 1024
) -> tuple[Array, Array, Array | None]:
    """Return x, y and mask after a look at every sample and label.

    Some at a time, so that a GPU need not hold them all.
    """
    if not isinstance(model, SequenceClassifier):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a SequenceClassifier, which has a loss. "
            "For other layers write the loop: forward, a loss of npformer.functional, backward, "
            "Adam.step"
        )
    x, y, mask = _parts(name, data)
    if len(x) == 0:
        raise ValueError(f"{name} has no samples; expected at least 1")
    for start in range(0, len(x), at_once):
        rows = slice(start, start + at_once)
        try:
            model.prepare_batch(x[rows], y[rows], None if mask is None else mask[rows])
        except (TypeError, ValueError) as error:
            raise type(error)(f"in {name}, {error}") from error
    try:
        model.check_padding(mask)
    except ValueError as error:
        raise ValueError(f"in {name}, {error}") from error
    return x, y, mask


def _culprit(model: SequenceClassifier, x: Array, mask: Array | None, at_once: int = 256) -> str:
    """Return the name of the first tensor that is not finite when a model sees x."""
    kept = x if mask is None else x[mask]  # padding may hold anything
    if x.dtype.kind == "f" and not np.isfinite(kept).all():
        return "the input x"
    for start in range(0, len(x), at_once):
        rows = slice(start, start + at_once)
        with np.errstate(all="ignore"):
            found = first_non_finite(
                model, *model.prepare(x[rows], None if mask is None else mask[rows])
            )
        if found is not None:
            return found
    return "the loss itself (every layer's output is finite at evaluation)"


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

    def kept(self) -> str:
        """Return what `restore` leaves, in words."""
        if self.epoch is None:
            return "No best weights were kept, so the model is as it was when this was found"
        return f"The model has the best weights so far, those of epoch {self.epoch}"


class _LossWatch:
    """Losses of an epoch, read in batches, for each reading waits for the device."""

    def __init__(
        self,
        model: SequenceClassifier,
        inputs: tuple[Array, Array | None],
        every: int,
        best: _Best,
    ) -> None:
        self.model = model
        self.inputs = inputs
        self.every = every
        self.best = best
        self._unread: list[tuple[Array, int, np.ndarray]] = []
        self._read: list[float] = []

    def note(self, loss: Array, step: int, rows: np.ndarray) -> None:
        """Take a step's loss, before its update; look at all unread ones every so many steps."""
        self._unread.append((loss, step, rows))
        if len(self._unread) >= self.every:
            self._look(updates=step - 1)

    def mean(self) -> float:
        """Return the mean loss of the epoch."""
        if self._unread:
            self._look(updates=self._unread[-1][1])
        return float(np.mean(self._read))

    def _look(self, updates: int) -> None:
        """Read the losses; `updates` of the model have happened, some maybe since a bad loss."""
        first = self._unread[0][0]
        values = to_numpy(array_module(first).stack([loss for loss, _, _ in self._unread]))
        for value, (_, step, rows) in zip(values.tolist(), self._unread, strict=True):
            if not math.isfinite(value):
                x, mask = self.inputs
                culprit = _culprit(self.model, x[rows], None if mask is None else mask[rows])
                notes = self.best.kept()
                if updates >= step and culprit != "the input x":
                    notes += (
                        f". This was seen {updates - step + 1} updates later, when NaN had spread; "
                        "check_every=1 finds the tensor where it began"
                    )
                raise NonFiniteLossError(step, culprit, notes)
            self._read.append(value)
        self._unread.clear()
