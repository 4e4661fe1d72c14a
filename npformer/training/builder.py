"""The parts of a training, each built by what `fit` was given."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import Feed, checks, generators, get_backend, use_precision
from npformer.core.dispatch import enabled
from npformer.core.support.explained_errors import add_place_to_errors
from npformer.engine.team import Team
from npformer.engine.updates import device_generator
from npformer.models.losses import Loss
from npformer.models.step import PlainStep, Step
from npformer.models.trainable import Model
from npformer.models.trainable.metrics import name_of
from npformer.optim import Adam, Optimizer, schedule_for
from npformer.optim.own_parameters import check_trains
from npformer.training.batches import Batches, Task, choose_batching
from npformer.training.callbacks import Callback, TrainingState, check_needs_no_gradients
from npformer.training.history import History
from npformer.training.loop import Training
from npformer.training.settings import Settings
from npformer.training.signals import Interrupts
from npformer.training.single_process import Processes
from npformer.training.steps import ClippedUpdate, TeamStep, Update
from npformer.training.watchers import EarlyStopping, ProgressBar, Recorder


@dataclass(frozen=True)
class Builder:
    """Builds the parts of a training in one process; `RankBuilder` those of several ranks."""

    model: Model
    settings: Settings
    processes: Processes

    def generator(self) -> np.random.Generator:
        """Return the generator of the training, which draws the order of the samples."""
        return generators.from_seed(self.settings.seed)

    def dropout_generator(self, generator: np.random.Generator) -> Any:
        """Return the generator of dropout's masks.

        It is a child of the training's, so that the order of samples does not depend on it.
        """
        (child,) = generator.spawn(1)
        backend = self.model.backend
        if self.settings.masks == "host" or backend == "numpy":
            return child
        return device_generator(backend, int(child.integers(1 << 63))) or child

    def batches(self, task: Task, generator: np.random.Generator) -> Batches:
        """Return the batches of a training, whose order in each epoch the generator draws."""
        return Batches(
            self.model,
            task,
            batch_size=self.settings.samples_per_update,
            way=choose_batching(self.model, task.part, self.settings.batches),
            shuffle=generator,
        )

    def optimizer(self, batches: Batches, callbacks: list[Callback]) -> Optimizer:
        """Return the optimizer that updates the model in each step."""
        optimizer = optimizer_for(self.model, self.settings, self.settings.epochs * len(batches))
        if self.settings.shard_moments:  # by a single process this changes nothing
            check_needs_no_gradients(callbacks)
        return optimizer

    def give_back(self, optimizer: Optimizer) -> None:
        """Give the user's optimizer what the training has borrowed from it."""

    def precision(self) -> AbstractContextManager[Any]:
        """Return a context in which matrix products have the precision that was asked for."""
        if self.settings.precision is None:
            return nullcontext()
        return precision_of(self.model, self.settings.precision)

    def interrupts(self) -> Interrupts:
        """Return the watcher that lets signals end the training."""
        return Interrupts()

    def feed(self, resources: ExitStack) -> Feed | None:
        """Return what uploads batches while a device computes; None if the backend needs none."""
        start = get_backend(self.model.backend).feed
        return None if start is None else resources.enter_context(closing(start()))

    def step(self, loss: Loss, dropout: Any, resources: ExitStack) -> Step:
        """Return what computes the loss of a batch and its gradients."""
        micro_batch = self.settings.samples_at_once
        shares_nothing = self.settings.workers in ("auto", 1) and micro_batch is None
        if shares_nothing and not enabled():
            return PlainStep(self.model, loss, dropout)
        return self._team_step(loss, dropout, resources)

    def update(self, optimizer: Optimizer) -> Update:
        """Return what updates the weights by gradients: the optimizer, perhaps after clipping."""
        if self.settings.clip_norm is None:
            return optimizer
        return ClippedUpdate(optimizer, self.settings.clip_norm)

    def state(self, task: Task, batches: Batches, optimizer: Optimizer) -> TrainingState:
        """Return the state of the training before its first step."""
        return TrainingState(
            self.model,
            optimizer,
            History(metric=name_of(task.metric), validation_rows=task.rows_held_out),
            epochs=self.settings.epochs,
            n_steps=len(batches),
            rank=self.processes.rank,
            n_ranks=self.processes.size,
        )

    def training(
        self,
        state: TrainingState,
        batches: Batches,
        dropout: Any,
        callbacks: list[Callback],
        interrupts: Interrupts,
        resources: ExitStack,
    ) -> Training:
        """Return the training, ready to run; it is where a checkpoint left it if there is one."""
        batches.feed = self.feed(resources)
        step = self.step(batches.task.loss, dropout, resources)
        recorder = Recorder(
            batches,
            every=self.settings.check_every,
            micro_batch=self.settings.samples_at_once,
            processes=self.processes,
        )
        watchers = self.watchers(recorder, state, dropout, callbacks, resources)
        return Training(
            state=state,
            batches=batches,
            step=step,
            update=self.update(state.optimizer),
            watchers=[*watchers, interrupts],
            recorder=recorder,
            interrupts=interrupts,
            resources=resources,
        )

    def watchers(
        self,
        recorder: Recorder,
        state: TrainingState,
        dropout: Any,
        callbacks: list[Callback],
        resources: ExitStack,
    ) -> list[Callback]:
        """Return all watchers but the last, in the order in which they are called.

        What writes checkpoints has then resumed the training from one, if it is to.
        """
        batches = recorder.batches
        with_state: dict[str, Callback] = {"recorder": recorder}  # by their names in checkpoints
        if batches.task.held_out is not None:
            with_state["best"] = EarlyStopping(self.settings.patience, batches.task.metric)
        watchers = list(with_state.values())
        if self.settings.progress and self.processes.rank == 0:
            watchers.append(ProgressBar())
        watchers += callbacks
        watchers += self._watchers_over_ranks(callbacks)
        if self.settings.checkpoint is not None:
            from npformer.training.checkpoints import checkpoints_for  # when needed

            checkpoints = checkpoints_for(
                self.settings,
                state,
                batches,
                dropout,
                watchers=with_state,
                callbacks=callbacks,
                processes=self.processes,
                resources=resources,
            )
            checkpoints.begin(state, self.settings.resume)
            watchers.append(checkpoints)
        return watchers

    def _team_step(self, loss: Loss, dropout: Any, resources: ExitStack) -> TeamStep:
        settings = self.settings
        team = Team(self.model, settings.workers, settings.samples_at_once, loss=loss)
        return TeamStep(resources.enter_context(team), dropout)

    def _watchers_over_ranks(self, callbacks: list[Callback]) -> list[Callback]:
        return []


def optimizer_for(model: Model, settings: Settings, n_steps: int) -> Optimizer:
    """Return the optimizer of a training of `n_steps` steps: the user's, or an Adam."""
    if not model.parameters():
        raise ValueError(
            "every parameter of the model is frozen, so there is nothing to train; expected at "
            "least one that is not: model.unfreeze('classify.*')"
        )
    adam_options = settings.adam_options()
    if settings.optimizer is None:
        if isinstance(settings.schedule, str):
            with add_place_to_errors(f"in a training of {n_steps} steps, "):
                adam_options["schedule"] = schedule_for(settings.schedule, n_steps)
        return Adam(model.parameters(), **adam_options)
    checks.instance("optimizer", settings.optimizer, Optimizer, "Write Adam(model.parameters())")
    if adam_options:
        options = " and ".join(f"{name}={value!r}" for name, value in adam_options.items())
        raise ValueError(
            f"optimizer is given together with {options}; expected only one of the two, because an "
            "optimizer has its own settings. Pass them to Adam(...)"
        )
    check_trains(settings.optimizer.parameters, model.parameters())
    return settings.optimizer


def precision_of(model: Model, precision: str) -> AbstractContextManager[Any]:
    """Return a context in which matrix products have a precision."""
    if str(precision) == "tf32" and model.dtype != "float32":
        raise ValueError(
            f"precision is 'tf32' and the model's dtype is {model.dtype}; expected float32, whose "
            "products TF32 rounds. Build the model with dtype='float32', or leave precision out"
        )
    return use_precision(precision, model.backend)
