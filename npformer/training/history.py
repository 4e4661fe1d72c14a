"""History: what `fit` returns."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import zip_longest
from typing import Any, Self

from npformer.core.support.tables import Table, as_html, as_text

PER_EPOCH = (
    "train_loss",
    "validation_loss",
    "validation_accuracy",
    "validation_metric",
    "lr",
    "seconds",
)
"""Attributes that have an entry for each epoch."""

PRINTED = 10
"""Epochs at the beginning, and at the end, that are printed."""


@dataclass(repr=False)
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

    def table(self) -> list[dict[str, Any]]:
        """Return a dict for each epoch: its number, counted from 1, and what was measured."""
        columns = {name: getattr(self, name) for name in PER_EPOCH if getattr(self, name)}
        rows = zip_longest(*columns.values())
        return [
            {"epoch": epoch, **dict(zip(columns, row, strict=True))}
            for epoch, row in enumerate(rows, start=1)
        ]

    def to_pandas(self) -> Any:
        """Return `table` as a DataFrame of pandas, whose index is the number of the epoch.

        Raises
        ------
        ImportError
            pandas is missing.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "History.to_pandas needs pandas; install it: python -m pip install pandas. "
                "History.table() needs nothing"
            ) from error
        return (
            pandas.DataFrame(self.table(), columns=["epoch", *PER_EPOCH])
            .dropna(axis="columns", how="all")
            .set_index("epoch")
        )

    def __repr__(self) -> str:
        return as_text([self._printed()], [self._ending()], ">" * 9)

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        return as_html([self._printed()], [self._ending()])

    def _printed(self) -> Table:
        """Return the table as words: of many epochs the first, the best and the last ones."""
        rows = self.table()
        names = [name for name in (rows[0] if rows else {"epoch": 0}) if not self._repeats(name)]
        words = [tuple(_words(name, row[name]) for name in names) for row in rows]
        shown = [i for i in range(len(words)) if self._is_printed(i, len(words))]
        lines = [tuple(name.replace("_", " ") for name in names), *(words[i] for i in shown)]
        hidden = len(words) - len(shown)
        return f"{len(words)} epochs{f', {hidden} of them not shown' * bool(hidden)}", lines

    def _repeats(self, name: str) -> bool:
        """Return whether a column is another one, under the name of a metric."""
        return name == "validation_metric" and self.metric in ("accuracy", "loss")

    def _is_printed(self, i: int, n: int) -> bool:
        return i < PRINTED or i >= n - PRINTED or i + 1 == self.best_epoch

    def _ending(self) -> str:
        """Return why the training ended, and which weights the model has."""
        weights = "" if self.best_epoch is None else f"; weights of epoch {self.best_epoch}"
        return f"{self.stopped}{weights}"

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


def _words(name: str, value: float | None) -> str:
    """Return a number of an epoch as words."""
    if value is None:
        return ""
    if name == "epoch":
        return str(value)
    return f"{value:.3g}" if name in ("lr", "seconds") else f"{value:.4f}"
