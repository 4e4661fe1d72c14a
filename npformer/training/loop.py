"""fit: the training loop."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.core import Feed, Seed, explained_memory_error, get_backend, initializers
from npformer.engine.workers import Team
from npformer.losses import Loss
from npformer.models import Batch
from npformer.optim import Adam, Schedule, clip_by_global_norm
from npformer.training.arguments import (
    Options,
    _at_precision,
    check_options,
    check_still_trained,
    generator_of_dropout,
    optimizer_of,
)
from npformer.training.callbacks import (
    Callback,
    Function,
    InOrder,
    TrainingState,
    checked_callbacks,
)
from npformer.training.evaluation import (
    Data,
    Evaluation,
    _require_classifier,
    batch_at_evaluation,
    checked,
    measure,
)
from npformer.training.history import History
from npformer.training.observers import BestWeights, LossWatch, Patience, ProgressBar, Recorder


def fit(
    model: SequenceClassifier,
    data: Data,
    *,
    validation: Data | None = None,
    epochs: int = 10,
    batch_size: int = 32,
    lr: float | None = None,
    schedule: Schedule | str | None = None,
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
    callbacks: Sequence[Callback | Function] = (),
    loss: Loss | None = None,
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
    schedule : callable or str, optional
        Step, from 1, to a factor on the learning rate; or a name in `npformer.optim.SCHEDULES` with
        its options, such as "cosine(total=1000, warmup=100)".
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
    callbacks : list of Callback or callable
        What looks on, and may stop the training: see `Callback`. A plain function is called after
        each epoch, with the `TrainingState`. In each step and epoch they come last, in this order:
        the watch over the loss, the history, the best weights, patience, the progress bar, and
        then these, in the order of the list.
    loss : Loss, optional
        What to train on in place of the model's own, see `npformer.losses`. One that knows no
        classes has no accuracy: the best epoch is then the one of the lowest validation loss.

    Returns
    -------
    history : History

    Raises
    ------
    TypeError
        Not a classifier, data that are not NumPy arrays of its types, or a callback that could not
        be called.
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
    settings = {"lr": lr, "schedule": schedule, "weight_decay": weight_decay}
    options = Options(
        epochs=epochs,
        batch_size=batch_size,
        clip_norm=clip_norm,
        patience=patience,
        workers=workers,
        processes=processes,
        micro_batch=micro_batch,
        check_every=check_every,
        precision=precision,
        masks=masks,
        on_interrupt=on_interrupt,
    )
    check_options(options, validation is not None, optimizer, settings)
    theirs = checked_callbacks(callbacks)
    # A wrong label in the last batch should not cost an epoch.
    _require_classifier(model)
    loss = model.loss_with(loss, label_smoothing)
    samples = checked(model, "data", data, loss)
    held_out = None if validation is None else checked(model, "validation", validation, loss)
    rng = initializers.generator(seed)
    optimizer = optimizer_of(model, optimizer, settings)
    drawing = generator_of_dropout(model, masks, rng)

    state = TrainingState(model, optimizer, History(), epochs, -(-len(samples) // batch_size))
    best = BestWeights(model)
    every = check_every or (1 if model.backend == "numpy" else 50)
    watch = LossWatch(samples, held_out, every, best)
    ours: list[Callback] = [watch, Recorder(watch), best]
    if patience is not None:
        ours.append(Patience(patience))
    observers = InOrder([*ours, ProgressBar(progress), *theirs])
    try:
        with _at_precision(model, precision), _team(model, options, loss) as (team, feed):
            data_and_team = samples, held_out, loss, team, feed
            training = Training(*data_and_team, options, rng, drawing, observers, state)
            observers.on_start(state)
            for epoch in range(1, epochs + 1):
                if state.stopping is not None:
                    break
                run_epoch(training, epoch)
            watch.finish(state)
        state.history.stopped = state.stopping or "finished"
    except KeyboardInterrupt:
        state.history.stopped = "interrupted"
        if on_interrupt == "raise":
            raise
    except BaseException:
        state.history.stopped = "error"
        raise
    finally:
        state._set(rows=None, gradients=None)
        observers.on_end(state)
    return state.history


@dataclass(frozen=True)
class Training:
    """What an epoch needs."""

    samples: Batch
    held_out: Batch | None
    loss: Loss
    team: Team
    feed: Feed | None
    options: Options
    rng: np.random.Generator
    drawing: Any
    """The generator of dropout's masks."""
    observers: Callback
    state: TrainingState


def run_epoch(training: Training, epoch: int) -> None:
    """Go through all data once, in a new order, and look at the validation data.

    Where a callback stops the training before the last step, the epoch ends there.
    """
    state, size = training.state, training.options.batch_size
    state._set(epoch=epoch, _began=time.perf_counter())
    order = training.rng.permutation(len(training.samples))
    for step in range(1, state.n_steps + 1):
        take_step(training, step, order[(step - 1) * size : step * size])
        if state.stopping is not None and step < state.n_steps:
            return
    if training.held_out is not None:
        state._set(evaluation=_evaluation(training, training.held_out))
    training.observers.after_epoch(state)


def take_step(training: Training, step: int, rows: np.ndarray) -> None:
    """Take one step of the optimizer, on some samples."""
    state, options = training.state, training.options
    with _computing(training, len(rows)):
        check_still_trained(state)
        samples = training.samples.of_rows(rows)
        batch = state.model.upload(samples, training.feed, loss=training.loss)
        loss, gradients = training.team.step(batch, generator=training.drawing)
    state._set(
        step=state.optimizer.steps + 1,
        step_in_epoch=step,
        rows=rows,
        gradients=gradients,
        _loss=loss,
    )
    training.observers.before_update(state)
    with _computing(training, len(rows)):
        if options.clip_norm is not None:
            clip_by_global_norm(gradients, options.clip_norm)
        state.optimizer.step(gradients)
    training.observers.after_step(state)
    state._set(rows=None, gradients=None)


@contextmanager
def _computing(training: Training, n_rows: int) -> Iterator[None]:
    """Let overflow pass, for the watch looks at the loss; say what to try if memory runs out."""
    options = training.options
    at_once = min(options.batch_size, options.micro_batch or options.batch_size)
    quiet = np.errstate(over="ignore", invalid="ignore")
    with quiet, explained_memory_error(training.state.model.backend, n_rows, at_once):
        yield


def _evaluation(training: Training, held_out: Batch) -> Evaluation:
    options = training.options
    at_once = batch_at_evaluation(options.batch_size, options.micro_batch)
    # Each copy takes so many; and processes=True asks for copies that train.
    by_size = "auto" if options.processes and options.workers == "auto" else False
    with np.errstate(over="ignore", invalid="ignore"):
        return measure(training.state.model, held_out, training.loss, at_once, by_size)


@contextmanager
def _team(
    model: SequenceClassifier, options: Options, loss: Loss
) -> Iterator[tuple[Team, Feed | None]]:
    """Yield the workers, and what brings them their batches where there is a device."""
    start_feed = get_backend(model.backend).feed
    with ExitStack() as stack:
        feed = None if start_feed is None else stack.enter_context(closing(start_feed()))
        team = Team(
            model, options.workers, options.micro_batch, processes=options.processes, loss=loss
        )
        yield stack.enter_context(team), feed
