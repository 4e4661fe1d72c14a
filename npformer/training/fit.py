"""fit: train a model."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from npformer.core import Seed
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.data.samples import Data
from npformer.models.losses import Loss
from npformer.models.only_training import only_training_of
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import Metric
from npformer.optim import Optimizer, Schedule
from npformer.training.arguments import check_model, check_nothing_misplaced
from npformer.training.batches import check_task
from npformer.training.builder import Builder
from npformer.training.callbacks import Callback, Function, check_callbacks
from npformer.training.history import History
from npformer.training.memory_check import warn_if_too_large
from npformer.training.settings import Settings
from npformer.training.single_process import processes_of


@refuse_unknown_arguments
def fit(
    model: Model,
    data: Data,
    *misplaced: Any,
    # data
    validation: Data | float | None = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    batch_size: int = 32,
    batches: str = "auto",
    # objective
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
    layer_decay: float | None = None,
    optimizer: Optimizer | None = None,
    clip_norm: float | None = None,
    accumulate: int = 1,
    seed: Seed = 0,
    # computation
    workers: int | str = "auto",
    micro_batch: int | None = None,
    check_every: int | None = None,
    precision: str | None = None,
    masks: str = "host",
    communicator: Any = None,
    shard_moments: bool = False,
    # monitoring
    progress: bool = True,
    callbacks: Sequence[Callback | Function] = (),
    on_interrupt: str = "raise",
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 1,
    resume: bool = False,
) -> History:
    """Train a model in place, and keep its best weights.

    A signal (Ctrl-C, SIGTERM) ends the training after the current step and puts the best weights
    back; a second Ctrl-C does not wait for the step to end, but an update of the weights is never
    left half done.

    The arguments come in groups, in this order:

    - Data: data, validation, sample_weight, class_weight, batch_size, batches.
    - Objective: label_smoothing, loss, metric, patience.
    - Steps: epochs, lr, schedule, weight_decay, no_decay, layer_decay, optimizer, clip_norm,
      accumulate, seed.
    - Computation: workers, micro_batch, check_every, precision, masks, communicator,
      shard_moments.
    - Monitoring: progress, callbacks, on_interrupt, checkpoint, every, resume.

    Parameters
    ----------
    model : Model
        Such as a `SequenceClassifier`, or a layer of your own: docs/extending/model.md.
    data : (x, y), (x, y, mask) or (x, y, mask, types)
        Host arrays, or arrays in files (memory-mapped or `npformer.data.sharded`), which are read
        a batch at a time; mask and types may be None. For a model with two inputs, x, mask and
        types are tuples with one for each. A `SequenceClassifier` remembers that it was trained
        with a mask, and the token id of padding if there is only one.
    validation : data as above, or float, optional
        Evaluated after each epoch. The model ends with the weights of the epoch that had the best
        `metric`; among equals, the lowest loss wins. Without it, the model keeps its last weights.
        A float, such as 0.1, is the share of the data to hold out: the seed draws the same share of
        each class, and `History.validation_rows` records the rows.
    sample_weight : array, shape (n,) or, if tokens have targets, (n, length), optional
        s, at least 0: the loss of a batch is sum_i s_i loss_i / sum_i s_i. Only ratios matter.
    class_weight : "balanced", sequence of float, or mapping of labels to float, optional
        How much the labels of each class count in the loss, as in PyTorch's
        ``CrossEntropyLoss(weight=...)``; `evaluate` and validation ignore it. "balanced": n /
        (n_classes n_k) for class k with n_k of n labels.
    batch_size : int
        Samples in a step.
    batches : {"auto", "by_length", "cut", "shuffled"}
        "by_length": samples of similar length share a batch, cut to its longest sample, which is
        faster and changes gradients only by rounding. "cut": any samples, cut in the same way.
        "shuffled": any samples, padded as they came. "auto": if there is a mask and the model skips
        padding, "by_length" for one input and "cut" for two, where batches of a single length slow
        learning down; otherwise "shuffled". Mixers with ``padding="zero"`` and
        ``pooling="flatten"`` do not skip padding.
    label_smoothing, loss : optional
        As in `Model.loss_and_gradients`. A loss without classes has no accuracy; the best
        epoch is then the one with the lowest validation loss.
    metric : {"accuracy", "macro_f1", "balanced_accuracy", "loss"} or callable
        Chooses the best epoch; other names in `Model.figures` work, too. A function gets y and
        probabilities, (n,) and (n, n_classes) for the n labels of the validation data, and returns
        a number, the larger the better.
    patience : int, optional
        Stop after this many epochs without a better one; needs validation data.
    epochs : int
        Passes over all data.
    lr, schedule, weight_decay, no_decay, layer_decay : optional
        Settings of `Adam`, with its defaults. A schedule by its name, such as "cosine", is as long
        as the training, unless it sets its own total.
    optimizer : Optimizer, optional
        An Adam, an SGD or one of your own, instead of these settings.
    clip_norm : float, optional
        Gradients are scaled so that their global norm is at most this.
    accumulate : int
        Batches per update: gradients are those of one batch of ``accumulate * batch_size`` samples,
        computed `batch_size` at a time. A step, also of the schedule, is an update.
    seed : int or numpy.random.Generator
        Decides the order of the samples and dropout's masks, whatever the number of workers. Two
        runs with the same seed, model and number of workers (`History.workers`) are equal bit for
        bit; another number changes the order of sums. (On a GPU with `use_kernels(False)` they are
        equal up to rounding: CuPy adds the gradients of repeated token ids in any order.)
    workers : int or "auto"
        CPU cores that share each batch, or each long sequence, in threads. "auto": all cores, if
        there is enough to compute.
    micro_batch : int, optional
        As in `Model.loss_and_gradients`.
    check_every : int, optional
        Steps between checks of the loss; a check waits for a GPU. None: 1 on a CPU, 50 on a GPU.
    precision : {"float32", "tf32"}, optional
        How a GPU multiplies float32 arrays during the training, see `use_precision`. None: leave
        the precision as it is.
    masks : {"host", "device"}
        Where dropout's masks are drawn. "host": by NumPy, so that a seed gives the same run on
        every backend. "device": on the GPU, which is many times faster for a large model.
    communicator : Communicator or mpi4py.MPI.Comm, optional
        The ranks that train the model together, each on its part of every batch, such as
        ``npformer.distributed.world()``: those that mpiexec started. All call `fit` with the same
        arguments and data, and end with the same weights, bit for bit. The result is that of one
        process, up to the order of sums. Callbacks run on every rank; rank 0 writes checkpoints and
        shows the progress bar. If one rank fails, the others raise `RankFailed`.
    shard_moments : bool
        Each rank keeps only Adam's moments of its part of the parameters (ZeRO, stage 1): the
        same numbers with less memory. Callbacks then see no gradients.
    progress : bool
        Show a progress bar.
    callbacks : list of Callback or callable
        Called during the training, which they may stop: see `Callback`. A plain function is called
        after each epoch, with the `TrainingState`.
    on_interrupt : {"raise", "return"}
        After Ctrl-C or SIGTERM: raise KeyboardInterrupt or SystemExit, or return.
    checkpoint : str or path, optional
        A folder for this training alone, locked while it runs. The whole state is written there at
        the end, after Ctrl-C or SIGTERM, and every so many epochs (`every`): weights, Adam's
        moments, generators, the place in the data, the history, the best weights, and what
        `Callback.state_dict` returns for each callback.
    every : int
        Epochs between checkpoints.
    resume : bool
        Continue from the checkpoint in the folder, or begin if there is none. Pass the same model,
        data and settings again; `epochs` may be larger. With the same number of workers the
        training then equals an uninterrupted one, bit for bit; otherwise a warning says why not.

    Warns
    -----
    UserWarning
        Among others, before the first step: it will probably take more memory than this machine
        has left; see `npformer.step_memory`.

    Raises
    ------
    NonFiniteLossError
        The loss, a weight after the last step, or the loss of its batch then, is NaN or infinite;
        names step and tensor.
    NonFiniteGradientError
        A gradient is, though the loss is not; names the parameter. Not on a GPU: the loss shows it.
    BatchTooLargeError
        A batch does not fit into memory.
    ValueError
        Also if the model is being trained already, by a fit that has not returned.
    OSError, CheckpointError, ValueError
        Before the first step: the folder cannot be written or is in use, or its checkpoint is
        damaged or that of another training. Later, failing to write a checkpoint only warns.
    """
    with processes_of(communicator) as processes:
        check_nothing_misplaced(misplaced)
        check_model("model", model)
        settings = Settings(
            validation=validation,
            sample_weight=sample_weight,
            class_weight=class_weight,
            batch_size=batch_size,
            batches=batches,
            label_smoothing=label_smoothing,
            loss=loss,
            metric=metric,
            patience=patience,
            epochs=epochs,
            lr=lr,
            schedule=schedule,
            weight_decay=weight_decay,
            no_decay=no_decay,
            layer_decay=layer_decay,
            optimizer=optimizer,
            clip_norm=clip_norm,
            accumulate=accumulate,
            seed=seed,
            workers=workers,
            micro_batch=micro_batch,
            check_every=check_every,
            precision=precision,
            masks=masks,
            shard_moments=shard_moments,
            progress=progress,
            callbacks=callbacks,
            on_interrupt=on_interrupt,
            checkpoint=checkpoint,
            every=every,
            resume=resume,
        )
        user_callbacks = check_callbacks(callbacks)
        builder = builder_for(model, settings, processes)
        generator = builder.generator()
        dropout = builder.dropout_generator(generator)
        task = check_task(model, data, settings, generator, processes)
        task_batches = builder.batches(task, generator)
        model_optimizer = builder.optimizer(task_batches, user_callbacks)
        state = builder.state(task, task_batches, model_optimizer)
        with (
            only_training_of(model),
            builder.precision(),
            builder.interrupts() as interrupts,
            ExitStack() as resources,
        ):
            training = builder.training(
                state, task_batches, dropout, user_callbacks, interrupts, resources
            )
            warn_if_too_large(model, task_batches, settings)
            training.run()
        builder.give_back(model_optimizer)
        if training.stop is not None and on_interrupt == "raise":
            raise training.stop
        return state.history


def builder_for(model: Model, settings: Settings, processes: Any) -> Builder:
    """Return what builds the parts of a training: in one process, or over several ranks."""
    if processes.size == 1:
        return Builder(model, settings, processes)
    from npformer.training.ranks import RankBuilder  # when needed

    return RankBuilder(model, settings, processes)
