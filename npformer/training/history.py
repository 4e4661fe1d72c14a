"""History: what `fit` returns."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self


@dataclass
class History:
    """What happened in a training, with one entry per epoch.

    Attributes
    ----------
    train_loss : list of float
        Mean loss of the epoch's steps that have labels, in training mode, in nats. Each step counts
        the same, however many labels it has.
    validation_loss, validation_accuracy : list of float
        Measured after the epoch. Empty without validation data.
    metric, validation_metric : str, and list of float
        What chose the best epoch, and its values: "accuracy", "macro_f1", "balanced_accuracy",
        "loss", or the name of a function. The larger the better, except for "loss".
    validation_rows : list of int or None
        The rows of the data that were held out by ``fit(validation=0.1)``.
    lr : list of float
        Learning rate of the epoch's last step.
    seconds : list of float
        Duration of the epoch.
    best_epoch : int or None
        The epoch, counted from 1, whose weights the model has now. None if the training ended
        in the middle of an epoch and no earlier weights were kept.
    stopped : str
        Why the training ended: "finished", "patience", "interrupted", or the reason that a callback
        gave. A callback's `on_end` may also see "error".
    workers : dict of str to int
        Who computed how many steps: {"2 threads": 40, "1 worker": 2}. Also "2 threads in
        a call" for a few long sequences. Another number of workers changes the
        order of sums, and so the last digits.
    """

    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    stopped: str = "finished"
    workers: dict[str, int] = field(default_factory=dict)
    metric: str = "accuracy"
    validation_metric: list[float] = field(default_factory=list)
    validation_rows: list[int] | None = None

    def plot(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> Any:
        """Draw loss and metric by epoch; return the matplotlib Figure.

        Parameters
        ----------
        path : str or path, optional
            Where to write it as well: a .png, .svg or .pdf.
        overwrite : bool
            Whether to replace an existing file.

        Raises
        ------
        ImportError
            matplotlib is missing: it comes with the extra ``plot``.
        """
        from npformer.training.inspection.curves import plot

        return plot(self, path, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the history that `to_dict` gave; raises ValueError for anything else."""
        names = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or {*values} != {*names}:
            raise ValueError(f"a history is {values!r}; expected a dict of {', '.join(names)}")
        return cls(**values)
