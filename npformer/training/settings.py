"""The settings of a training: what `fit` takes, checked by one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from npformer.core import Seed, checks
from npformer.data.samples import Data
from npformer.engine.worker_counts import check_workers
from npformer.models.losses import Loss
from npformer.models.trainable.metrics import Metric
from npformer.optim import Optimizer, Schedule
from npformer.training.callbacks import Callback, Function

WAYS = ("by_length", "cut", "shuffled")
"""The ways in which samples are put into batches."""

OF_ADAM = ("lr", "schedule", "weight_decay", "no_decay", "layer_decay")
"""Which settings are those of the Adam that `fit` makes; None leaves Adam's default."""

Check = Callable[[str, Any], object]
"""Takes the name of a setting and its value; raises TypeError or ValueError."""


def check_seed(name: str, seed: Seed) -> None:
    """Raise TypeError for no seed: nobody could train like that again."""
    if seed is None:
        raise TypeError(
            f"{name} is None; expected a whole number of at least 0 or a numpy.random.Generator: "
            "nobody could train like that again"
        )


def check_number_of_workers(name: str, workers: int | str) -> None:
    """Raise ValueError for what is neither a number of workers nor "auto"."""
    if not (isinstance(workers, str) and workers == "auto"):
        check_workers(workers)  # which only the engine knows


def check_folder(name: str, folder: str | os.PathLike[str]) -> None:
    """Raise TypeError or ValueError for what cannot be the folder of a checkpoint."""
    from npformer.training.storage.checkpoint_folder import checked_folder  # when needed

    checked_folder(name, folder)


def optional(check: Check) -> Check:
    """Return a check that accepts None, too."""

    def check_unless_none(name: str, value: Any) -> None:
        if value is not None:
            check(name, value)

    return check_unless_none


CHECKS: Mapping[str, Check] = {
    "seed": check_seed,
    "epochs": checks.positive,
    "batch_size": checks.positive,
    "accumulate": checks.positive,
    "every": checks.positive,
    "patience": optional(checks.positive),
    "micro_batch": optional(checks.positive),
    "check_every": optional(checks.positive),
    "workers": check_number_of_workers,
    "clip_norm": optional(partial(checks.number, above=0.0)),
    "checkpoint": optional(check_folder),
    "shard_moments": checks.flag,
    "progress": checks.flag,
    "resume": checks.flag,
    "on_interrupt": partial(checks.choice, choices=("raise", "return")),
    "masks": partial(checks.choice, choices=("host", "device")),
    "batches": partial(checks.choice, choices=("auto", *WAYS)),
}
"""What these settings must be. The others are checked where model and data are known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """What `fit` takes besides the model, its data and the ranks, under the same names."""

    # data
    validation: Data | float | None
    sample_weight: Any
    class_weight: Any
    batch_size: int
    batches: str
    # objective
    label_smoothing: float
    loss: Loss | None
    metric: Metric
    patience: int | None
    # steps
    epochs: int
    lr: float | None
    schedule: Schedule | str | None
    weight_decay: float | None
    no_decay: Sequence[str] | None
    layer_decay: float | None
    optimizer: Optimizer | None
    clip_norm: float | None
    accumulate: int
    seed: Seed
    # computation
    workers: int | str
    micro_batch: int | None
    check_every: int | None
    precision: str | None
    masks: str
    shard_moments: bool
    # monitoring
    progress: bool
    callbacks: Sequence[Callback | Function]
    on_interrupt: str
    checkpoint: str | os.PathLike[str] | None
    every: int
    resume: bool

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            check(name, getattr(self, name))
        self._check_patience()
        self._check_checkpoint()
        for name in ("epochs", "batch_size", "accumulate"):  # NumPy's small integers would overflow
            object.__setattr__(self, name, int(getattr(self, name)))

    def _check_patience(self) -> None:
        if self.patience is not None and self.validation is None:
            raise ValueError(
                f"patience is {self.patience} and there is no validation data; expected some, "
                "because it decides which epoch is better. Pass validation=(x, y), or patience=None"
            )

    def _check_checkpoint(self) -> None:
        if self.checkpoint is None and (self.resume or self.every != 1):
            which = "resume=True" if self.resume else f"every={self.every}"
            raise ValueError(
                f"{which} without a checkpoint; expected the folder of the training as well: "
                "checkpoint='runs/mine'"
            )

    @property
    def samples_per_update(self) -> int:
        """The number of samples in an update: those of one batch, or of several accumulated."""
        return self.accumulate * self.batch_size

    @property
    def samples_at_once(self) -> int | None:
        """The most samples that a worker computes at a time; None: its whole share of a batch."""
        if self.accumulate == 1:
            return self.micro_batch
        return min(self.batch_size, self.micro_batch or self.batch_size)

    def adam_options(self) -> dict[str, Any]:
        """Return those options of Adam that are not left at their defaults."""
        options = {name: getattr(self, name) for name in OF_ADAM}
        return {name: value for name, value in options.items() if value is not None}
