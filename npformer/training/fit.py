"""fit: the training loop."""

import os
from collections.abc import Sequence
from typing import Any, cast

from npformer.core import Seed, checks
from npformer.data.held_out import held_out_rows, validation_share
from npformer.distributed import as_communicator
from npformer.engine.team import Team
from npformer.losses import Loss
from npformer.optim import Adam, Schedule
from npformer.optim.sharded_adam import ShardedAdam
from npformer.storage.checkpoint_folder import checkpoint_folder, reserved
from npformer.trainable import SequenceClassifier
from npformer.trainable.metrics import Metric, checked_metric, name_of
from npformer.training.arguments import (
    check_patience,
    dropout_generator,
    feed_of,
    lengths_for,
    note_padding,
    optimizer_for,
    precision_of,
    weighted_loss,
)
from npformer.training.callback_list import CallbackList, Function, checked_callbacks
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.checkpoints import Checkpoints, n_bytes
from npformer.training.common_start import begin_together, common_generator, sharded
from npformer.training.early_stopping import EarlyStopping
from npformer.training.evaluation import Data, checked_data, require_classifier
from npformer.training.history import History
from npformer.training.interrupts import Interrupts, Terminated, word_for
from npformer.training.loss_watch import LossWatch
from npformer.training.progress_bar import ProgressBar
from npformer.training.training import Training


def fit(
    model: SequenceClassifier,
    data: Data,
    *,
    validation: Data | float | None = None,
    epochs: int = 10,
    batch_size: int = 32,
    lr: float | None = None,
    schedule: Schedule | str | None = None,
    weight_decay: float | None = None,
    no_decay: Sequence[str] | None = None,
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
    batches: str = "auto",
    on_interrupt: str = "raise",
    callbacks: Sequence[Callback | Function] = (),
    loss: Loss | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 1,
    resume: bool = False,
    sample_weight: Any = None,
    class_weight: Any = None,
    metric: Metric = "accuracy",
    accumulate: int = 1,
    communicator: Any = None,
    shard_moments: bool = False,
) -> History:
    """Train a classifier in place, and keep its best weights.

    A signal (Ctrl-C, SIGTERM) ends the training after the current step, with the best weights put
    back; a second Ctrl-C does not wait for the end of the step, but the weights are never those of
    half an update.

    Parameters
    ----------
    model : SequenceClassifier
    data : (x, y), (x, y, mask) or (x, y, mask, types)
        Host arrays, or arrays in files, memory-mapped or `npformer.data.sharded`, of which a batch
        is read at a time; mask and types may be None. With a mask, the model remembers that it was
        trained with one, and the token id of padding if there is only one: `SequenceClassifier`.
    validation : data as above, or float, optional
        Evaluated after each epoch. The model ends with the weights of the epoch that had the best
        `metric`, and the lowest loss among equals. Without it, the model keeps its last weights. A
        float is a share of the data, such as 0.1, which is held out: drawn by the seed, in each
        class the same share, and kept in `History.validation_rows`.
    epochs, batch_size : int
        Passes over all data, and samples in a step.
    lr, schedule, weight_decay, no_decay : optional
        Settings of Adam, with Adam's defaults.
    optimizer : Adam, optional
        Used instead of lr, schedule, weight_decay and no_decay.
    clip_norm : float, optional
        Gradients are scaled so that their global norm is at most this.
    label_smoothing, loss : optional
        As in `SequenceClassifier.loss_and_gradients`. For a loss without classes there is no
        accuracy, and the best epoch is the one of the lowest validation loss.
    patience : int, optional
        Stop after so many epochs without a better one; needs validation data.
    seed : int or numpy.random.Generator
        Decides the order of the samples and dropout's masks, whatever the number of workers. Two
        runs with the same seed, model and number of workers (`History.workers`) are equal bit for
        bit; another number changes the order of sums. (On a GPU with `use_kernels(False)` a run
        repeats up to rounding, because CuPy adds the gradients of repeated token ids in any order.)
    workers : int or "auto"
        CPU cores that share each batch, or each long sequence. "auto": all of them, if there is
        enough to compute.
    processes : bool or "auto"
        Whether workers are copies of this process or threads; the numbers are the same. "auto":
        copies, on Linux and from the main thread. A lock that another of your threads holds while
        they are made stays locked in them: if that matters, pass False. A copy that does nothing
        for 60 seconds is ended with CopyDiedError; NPFORMER_WORKER_TIMEOUT in the environment sets
        other seconds.
    micro_batch : int, optional
        As in `SequenceClassifier.loss_and_gradients`.
    progress : bool
        Show a progress bar.
    check_every : int, optional
        Steps between two checks of the loss, which wait for a GPU. None: 1 on a CPU, 50 on a GPU.
    precision : {"float32", "tf32"}, optional
        How a GPU multiplies float32 arrays during the training, see `use_precision`. None: as set
        outside.
    masks : {"host", "device"}
        Where dropout's masks are drawn. "host": by NumPy, so that a seed means the same run on
        every backend. "device": on the GPU, which is many times faster for a large model.
    batches : {"auto", "by_length", "shuffled"}
        "by_length": samples of similar length go together, and padding is cut to the longest of the
        batch, which is faster and changes gradients by rounding only. "shuffled": any samples,
        padded as they came. "auto": by length, if there is a mask and the model skips padding;
        mixers with ``padding="zero"`` and ``pooling="flatten"`` do not.
    on_interrupt : {"raise", "return"}
        After Ctrl-C or SIGTERM: raise KeyboardInterrupt or SystemExit, or return.
    callbacks : list of Callback or callable
        Called during the training, which they may stop: see `Callback`. A plain function is called
        after each epoch, with the `TrainingState`.
    checkpoint : str or path, optional
        A folder for this training alone, which is locked while it runs. The whole state is written
        there, at the end, after Ctrl-C or SIGTERM, and every so many epochs (`every`): weights,
        moments of Adam, generators, the place in the data, the history, the best weights, and what
        callbacks give for it (`Callback.state_dict`).
    every : int
        Epochs between two checkpoints.
    resume : bool
        Go on from the checkpoint in the folder, or begin if there is none. Pass the same model,
        data and settings again; `epochs` may grow. With the same number of workers the training
        then equals one that was not stopped, bit for bit; otherwise a warning names the difference.
    sample_weight : array, shape (n,), or also (n, length) without pooling, optional
        s, at least 0: the loss of a batch is sum_i s_i loss_i / sum_i s_i.
    class_weight : "balanced", sequence of float, or mapping of labels to float, optional
        How much the labels of each class weigh in the loss, as in PyTorch's
        ``CrossEntropyLoss(weight=...)``; `evaluate` and validation leave it out. "balanced": n /
        (n_classes n_k) for class k with n_k of n labels.
    metric : {"accuracy", "macro_f1", "balanced_accuracy", "loss"} or callable
        What the best epoch is best by; a function gets y and probabilities, (n,) and (n, n_classes)
        for the n labels of the validation data, and returns a number, the larger the better.
    accumulate : int
        Batches an update: gradients are those of one batch of ``accumulate * batch_size`` samples,
        computed `batch_size` at a time. Steps, and so the schedule, count updates.
    communicator : Communicator or mpi4py.MPI.Comm, optional
        The ranks that train the model together, each a part of every batch, such as
        ``npformer.distributed.world()``: those that mpiexec started. All call `fit` with the same
        arguments and data, and end with the same weights, bit for bit. The result is that of one
        process, up to the order of sums. Callbacks run on every rank; rank 0 writes checkpoints and
        the progress bar. If one rank fails, the others raise `RankFailed`.
    shard_moments : bool
        Each rank has Adam's moments of its own part of the parameters alone (ZeRO, stage 1): the
        same numbers with less memory. Callbacks see no gradients then.

    Raises
    ------
    NonFiniteLossError
        The loss is NaN or infinite, or a weight after the last step; names the step and the tensor.
    NonFiniteGradientError
        A gradient is, though the loss is not; names the parameter. On a GPU this shows in the loss.
    CopyDiedError, BatchTooLargeError
        A worker process ended in the middle of a step, or a batch does not fit into memory.
    OSError, CheckpointError, ValueError
        Before the first step: the folder cannot be written or is in use, its checkpoint is damaged,
        or it is that of another training. Later, a checkpoint that cannot be written is a warning.
    """
    with as_communicator(communicator).guard() as ranks:
        # NumPy's small integers would overflow.
        given = {"epochs": epochs, "batch_size": batch_size, "accumulate": accumulate}
        epochs, batch_size, accumulate = (checks.positive(name, n) for name, n in given.items())
        optional = {"patience": patience, "micro_batch": micro_batch, "check_every": check_every}
        for name, value in optional.items():
            if value is not None:
                checks.positive(name, value)
        if clip_norm is not None:
            checks.number("clip_norm", clip_norm, above=0.0)
        checks.choice("on_interrupt", on_interrupt, ("raise", "return"))
        checks.choice("masks", masks, ("host", "device"))
        checks.flag("shard_moments", shard_moments)
        checks.choice("batches", batches, ("auto", "by_length", "shuffled"))
        check_patience(patience, validation)
        folder = checkpoint_folder(checkpoint, every, resume)
        checked = checked_callbacks(callbacks)
        require_classifier(model)
        own_loss, loss = loss is not None, model.loss_with(loss, label_smoothing)
        metric = checked_metric(metric, loss)
        # All data are checked now, so that a wrong label in the last batch does not cost an epoch.
        samples = checked_data(model, "data", data, loss, sample_weight, ranks, progress)
        note_padding(model, samples)
        rng = common_generator(ranks, seed)
        dropout = dropout_generator(model, masks, rng)
        history, rows, part, held_out = History(metric=name_of(metric)), None, samples, None
        if (share := validation_share(validation)) is not None:
            rows, held = held_out_rows(samples, share, loss, *rng.spawn(1))
            part, held_out = samples.subset(rows), samples.subset(held)
            history.validation_rows = held.tolist()
        elif validation is not None:
            held_out = checked_data(model, "validation", cast(Data, validation), loss, None, ranks)
        loss = weighted_loss(model, loss, own_loss, class_weight, part)
        settings = {"schedule": schedule, "weight_decay": weight_decay, "no_decay": no_decay}
        own_optimizer = optimizer is not None
        optimizer = optimizer_for(model, optimizer, lr=lr, **settings)
        alike = {"seed": seed, "clip_norm": clip_norm, "batches": batches, **given}
        begin_together(ranks, model, optimizer, data=samples, validation=held_out, **alike)
        used = sharded(optimizer, ranks, checked) if shard_moments else optimizer
        if ranks.size > 1 and processes == "auto":
            processes = False  # MPI does not promise to survive a copied process
        if accumulate > 1:  # one batch, of which a worker computes so many samples at a time
            micro_batch = min(batch_size, micro_batch or batch_size)
            batch_size *= accumulate
        n_steps = -(-len(part) // batch_size)
        state = TrainingState(model, used, history, epochs, n_steps, ranks.rank, ranks.size)
        losses = LossWatch(samples, check_every or (1 if model.backend == "numpy" else 50), ranks)
        early = EarlyStopping(patience, metric)
        all_callbacks = CallbackList([early, ProgressBar(progress and ranks.rank == 0)], checked)
        stop: BaseException | None = None
        with Interrupts() as interrupts:
            try:
                with (
                    reserved(folder if ranks.rank == 0 else None, n_bytes(model, samples)),
                    precision_of(model, precision),
                    feed_of(model.backend) as feed,
                    Team(model, workers, micro_batch, processes=processes, loss=loss) as team,
                ):
                    training = Training(
                        state=state,
                        callbacks=all_callbacks,
                        losses=losses,
                        samples=samples,
                        held_out=held_out,
                        loss=loss,
                        team=team,
                        feed=feed,
                        # A copy evaluates whole batches, if the number of workers is free for it;
                        # and processes=True asks for copies that train.
                        processes="auto" if processes and workers == "auto" else False,
                        shuffle=rng,
                        dropout=dropout,
                        batch_size=batch_size,
                        micro_batch=micro_batch,
                        clip_norm=clip_norm,
                        interrupts=interrupts,
                        early_stopping=early,
                        metric=metric,
                        ranks=ranks,
                        shard_moments=used is not optimizer,
                        rows=rows,
                        lengths=lengths_for(model, part, batches),
                        counts=samples.counts_for(loss) if ranks.size > 1 else None,
                    )
                    checkpoints = None
                    if folder is not None:
                        checkpoints = Checkpoints(training, folder, every, seed)
                        checkpoints.begin(resume)
                    all_callbacks.start(state)
                    training.run(checkpoints)
                state.history.stopped = state.stopping or "finished"
            except (KeyboardInterrupt, Terminated) as signal:
                if ranks.size > 1 and not state._over:
                    raise  # of this rank alone, while the others are in the middle of a step
                stop = signal
                state.history.stopped = word_for(signal)
            except BaseException:
                state.history.stopped = "error"
                raise
            finally:
                with interrupts.held():
                    state._set(rows=None, gradients=None)
                    all_callbacks.end(state)
            if (late := interrupts.take()) is not None and stop is None:
                stop = late
                state.history.stopped = word_for(late)
        if isinstance(used, ShardedAdam) and own_optimizer:
            used.give_back()
        if stop is not None and on_interrupt == "raise":
            raise stop
        return state.history
