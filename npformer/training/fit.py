"""fit: train a model."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

from npformer.core import Seed, checks, get_backend
from npformer.data.user_arrays import Data
from npformer.distributed import as_communicator
from npformer.engine.team import Team
from npformer.losses import Loss
from npformer.optim import Adam, Schedule
from npformer.optim.sharded_adam import ShardedAdam
from npformer.storage.checkpoint_folder import checkpoint_folder, reserved
from npformer.trainable import Model
from npformer.trainable.metrics import Metric, name_of
from npformer.training.arguments import (
    check_choices,
    check_optional,
    check_patience,
    checked_task,
    dropout_generator,
    evaluate_task,
    optimizer_for,
    precision_of,
    way_of_batches,
)
from npformer.training.batches import Batches
from npformer.training.callbacks import (
    Callback,
    Function,
    TrainingState,
    checked_callbacks,
)
from npformer.training.checkpoints import Checkpoints, n_bytes, settings_of
from npformer.training.early_stopping import EarlyStopping
from npformer.training.evaluation import batch_at_evaluation, require_model
from npformer.training.history import History
from npformer.training.interrupts import Interrupts
from npformer.training.loss_watch import LossWatch
from npformer.training.progress import ProgressBar, Recorder
from npformer.training.training import Training
from npformer.training.workers import (
    SameWeights,
    Workers,
    begin_together,
    common_generator,
    sharded,
)


def fit(
    model: Model,
    data: Data,
    *,
    # data
    validation: Data | float | None = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    batch_size: int = 32,
    batches: str = "auto",
    # what is better
    label_smoothing: float = 0.0,
    loss: Loss | None = None,
    metric: Metric = "accuracy",
    patience: int | None = None,
    # steps
    epochs: int = 10,
    lr: float | None = None,
    schedule: Schedule | str | None = None,
    weight_decay: float | None = None,
    no_decay: Sequence[str] | None = None,
    optimizer: Adam | None = None,
    clip_norm: float | None = None,
    accumulate: int = 1,
    seed: Seed = 0,
    # who computes
    workers: int | str = "auto",
    processes: bool | str = "auto",
    micro_batch: int | None = None,
    check_every: int | None = None,
    precision: str | None = None,
    masks: str = "host",
    communicator: Any = None,
    shard_moments: bool = False,
    # who watches
    progress: bool = True,
    callbacks: Sequence[Callback | Function] = (),
    on_interrupt: str = "raise",
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 1,
    resume: bool = False,
) -> History:
    """Train a model in place, and keep its best weights.

    A signal (Ctrl-C, SIGTERM) ends the training after the current step, with the best weights put
    back; a second Ctrl-C does not wait for the end of the step, but the weights are never those of
    half an update.

    The arguments come in groups, in this order:

    - Data: data, validation, sample_weight, class_weight, batch_size, batches.
    - What is better: label_smoothing, loss, metric, patience.
    - Steps: epochs, lr, schedule, weight_decay, no_decay, optimizer, clip_norm, accumulate, seed.
    - Who computes: workers, processes, micro_batch, check_every, precision, masks, communicator,
      shard_moments.
    - Who watches: progress, callbacks, on_interrupt, checkpoint, every, resume.

    Parameters
    ----------
    model : Model
        Such as a SequenceClassifier, or a layer of your own: docs/extending/model.md.
    data : (x, y), (x, y, mask) or (x, y, mask, types)
        Host arrays, or arrays in files, memory-mapped or `npformer.data.sharded`, of which a batch
        is read at a time; mask and types may be None. For a model with two inputs, x, mask and
        types are tuples with one for each. A `SequenceClassifier` remembers that it was trained
        with a mask, and the token id of padding if there is only one.
    validation : data as above, or float, optional
        Evaluated after each epoch. The model ends with the weights of the epoch that had the best
        `metric`, and the lowest loss among equals. Without it, the model keeps its last weights. A
        float is a share of the data, such as 0.1, which is held out: drawn by the seed, in each
        class the same share, and kept in `History.validation_rows`.
    sample_weight : array, shape (n,), or also (n, length) if tokens have targets, optional
        s, at least 0: the loss of a batch is sum_i s_i loss_i / sum_i s_i.
    class_weight : "balanced", sequence of float, or mapping of labels to float, optional
        How much the labels of each class weigh in the loss, as in PyTorch's
        ``CrossEntropyLoss(weight=...)``; `evaluate` and validation leave it out. "balanced": n /
        (n_classes n_k) for class k with n_k of n labels.
    batch_size : int
        Samples in a step.
    batches : {"auto", "by_length", "cut", "shuffled"}
        "by_length": samples of similar length go together, and padding is cut to the longest of the
        batch, which is faster and changes gradients by rounding only. "cut": any samples, cut
        likewise. "shuffled": any samples, padded as they came. "auto": if there is a mask and the
        model skips padding, by length for one input and "cut" for two, where steps of one length
        each slow learning down; else shuffled. Mixers with ``padding="zero"`` and
        ``pooling="flatten"`` do not skip padding.
    label_smoothing, loss : optional
        As in `Model.loss_and_gradients`. For a loss without classes there is no
        accuracy, and the best epoch is the one of the lowest validation loss.
    metric : {"accuracy", "macro_f1", "balanced_accuracy", "loss"} or callable
        What the best epoch is best by, or another name in `Model.figures`; a function gets y and
        probabilities, (n,) and (n, n_classes) for the n labels of the validation data, and returns
        a number, the larger the better.
    patience : int, optional
        Stop after so many epochs without a better one; needs validation data.
    epochs : int
        Passes over all data.
    lr, schedule, weight_decay, no_decay : optional
        Settings of Adam, with Adam's defaults.
    optimizer : Adam, optional
        Used instead of lr, schedule, weight_decay and no_decay.
    clip_norm : float, optional
        Gradients are scaled so that their global norm is at most this.
    accumulate : int
        Batches an update: gradients are those of one batch of ``accumulate * batch_size`` samples,
        computed `batch_size` at a time. Steps, and so the schedule, count updates.
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
        As in `Model.loss_and_gradients`.
    check_every : int, optional
        Steps between two checks of the loss, which wait for a GPU. None: 1 on a CPU, 50 on a GPU.
    precision : {"float32", "tf32"}, optional
        How a GPU multiplies float32 arrays during the training, see `use_precision`. None: as set
        outside.
    masks : {"host", "device"}
        Where dropout's masks are drawn. "host": by NumPy, so that a seed means the same run on
        every backend. "device": on the GPU, which is many times faster for a large model.
    communicator : Communicator or mpi4py.MPI.Comm, optional
        The ranks that train the model together, each a part of every batch, such as
        ``npformer.distributed.world()``: those that mpiexec started. All call `fit` with the same
        arguments and data, and end with the same weights, bit for bit. The result is that of one
        process, up to the order of sums. Callbacks run on every rank; rank 0 writes checkpoints and
        the progress bar. If one rank fails, the others raise `RankFailed`.
    shard_moments : bool
        Each rank has Adam's moments of its own part of the parameters alone (ZeRO, stage 1): the
        same numbers with less memory. Callbacks see no gradients then.
    progress : bool
        Show a progress bar.
    callbacks : list of Callback or callable
        Called during the training, which they may stop: see `Callback`. A plain function is called
        after each epoch, with the `TrainingState`.
    on_interrupt : {"raise", "return"}
        After Ctrl-C or SIGTERM: raise KeyboardInterrupt or SystemExit, or return.
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
        optional = {"patience": patience, "micro_batch": micro_batch, "check_every": check_every}
        check_optional(clip_norm, optional)
        epochs = checks.positive("epochs", epochs)  # Python's: NumPy's small ones would overflow
        at_a_time = checks.positive("batch_size", batch_size)
        batch_size = at_a_time * checks.positive("accumulate", accumulate)
        check_choices(shard_moments, on_interrupt, masks, batches)
        check_patience(patience, validation)
        folder = checkpoint_folder(checkpoint, every, resume)
        of_user = checked_callbacks(callbacks)
        require_model(model)
        rng = common_generator(ranks, seed)
        dropout = dropout_generator(model, masks, rng)
        better: Any = {"loss": loss, "label_smoothing": label_smoothing, "metric": metric}
        weights: Any = {"sample_weight": sample_weight, "class_weight": class_weight}
        task = checked_task(model, data, validation, rng, ranks, progress, **better, **weights)
        settings = {"schedule": schedule, "weight_decay": weight_decay, "no_decay": no_decay}
        adam = optimizer_for(model, optimizer, lr=lr, **settings)
        if batch_size > at_a_time:
            micro_batch = min(at_a_time, micro_batch or at_a_time)
        drawn = Batches(task, batch_size, way_of_batches(model, task.part, batches), rng, ranks)
        alike = epochs, clip_norm, seed
        given = partial(settings_of, model, adam, drawn, *alike, micro_batch=micro_batch)
        begin_together(ranks, model, adam, given)
        used = sharded(adam, ranks, of_user) if shard_moments else adam
        history = History(metric=name_of(task.metric), validation_rows=task.rows_held_out)
        state = TrainingState(model, used, history, epochs, len(drawn), ranks.rank, ranks.size)
        if ranks.size > 1 and processes == "auto":
            processes = False  # MPI does not promise to survive a copied process
        check_every = check_every or (1 if model.backend == "numpy" else 50)
        losses = LossWatch(task, check_every, ranks)
        own = {"losses": losses, "recorder": Recorder(losses, task.metric)}
        own["best"] = EarlyStopping(patience, task.metric)
        watching = [*own.values(), ProgressBar(progress, ranks.rank), *of_user]
        if ranks.size > 1 and of_user:
            watching.append(SameWeights(ranks, of_user))
        with Interrupts(ranks) as interrupts, ExitStack() as contexts:
            if folder is not None and ranks.rank == 0:  # which writes for all
                contexts.enter_context(reserved(folder, n_bytes(model, task.samples)))
            contexts.enter_context(precision_of(model, precision))
            start = get_backend(model.backend).feed  # uploads while the device computes
            feed = None if start is None else contexts.enter_context(closing(start()))
            team = Team(model, workers, micro_batch, processes=processes, loss=task.loss)
            computing = Workers(contexts.enter_context(team), ranks, used is not adam)
            if folder is not None:
                checkpoints = Checkpoints(folder, every, drawn, dropout, own, of_user, given())
                checkpoints.begin(state, resume)
                watching.append(checkpoints)
            # A copy evaluates whole batches, if the number of workers is free for it; and
            # processes=True asks for copies that train.
            copies = "auto" if processes and workers == "auto" else False
            at_once = batch_at_evaluation(batch_size, micro_batch)
            evaluate = partial(evaluate_task, model, task, at_once, copies, ranks)
            parts = drawn, computing, [*watching, interrupts], losses, interrupts, evaluate
            stop = Training(state, *parts, clip_norm, dropout, feed).to_the_end(contexts)
        if isinstance(used, ShardedAdam) and optimizer is not None:
            used.give_back()
        if stop is not None and on_interrupt == "raise":
            raise stop
        return state.history
