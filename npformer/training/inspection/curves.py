"""Curves of trainings: losses on the left, the metric of the validation data on the right.

Without validation data, the learning rate is on the right.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npformer.core import checks
from npformer.data.libraries import library
from npformer.training.inspection.overfitting import lowest_epoch
from npformer.training.storage.outputs import check_place, write_output


def figure_of(
    histories: Mapping[str, Any], tested: Mapping[str, float] | None = None, title: str = ""
) -> Any:
    """Return a matplotlib Figure of some `History` objects, each with a name for the legend.

    `tested` has the test accuracy of some, by name; it is drawn at the best epoch, beside that of
    the validation data.

    Raises ImportError, which names the extra, if matplotlib is not installed.
    """
    figure = library("matplotlib.figure", "plot", "a figure of curves").Figure(
        figsize=(10, 4), layout="constrained"
    )
    losses, metrics = figure.subplots(1, 2)
    validated = any(history.validation_metric for history in histories.values())
    for i, (name, history) in enumerate(histories.items()):
        prefix = f"{name}, " if name else ""
        colour = f"C{i}"
        _draw_losses(losses, history, prefix, colour)
        if validated:
            _draw(metrics, history.validation_metric, f"{prefix}validation", history, colour, "--")
            _mark_best(metrics, history, (tested or {}).get(name), prefix, colour)
        else:
            _draw(metrics, history.lr, f"{prefix}learning rate", history, colour)
    losses.set(xlabel="epoch", ylabel="loss (nats)", ylim=(0, None))
    named = {history.metric.replace("_", " ") for history in histories.values()}
    measured = named.pop() if len(named) == 1 else "metric"
    metrics.set(xlabel="epoch", ylabel=measured if validated else "learning rate")
    if validated and all(history.metric in SHARES for history in histories.values()):
        metrics.set(ylim=(None, 1.005))
    for axes in (losses, metrics):
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if axes.lines:
            axes.legend(fontsize="small")
    if title:
        figure.suptitle(title)
    return figure


SHARES = ("accuracy", "macro_f1", "balanced_accuracy")
"""Metrics whose best value is 1."""


def write_figure(figure: Any, path: Path, *, overwrite: bool = False) -> None:
    """Write a figure, as a whole file or not at all, in the format of the name's ending."""
    image = io.BytesIO()
    figure.savefig(image, dpi=120, format=path.suffix.lstrip(".") or "png")
    write_output(path, image.getvalue(), overwrite=overwrite)


def plot(history: Any, path: Any = None, *, overwrite: bool = False) -> Any:
    """Do what `History.plot` says."""
    checks.flag("overwrite", overwrite)
    place = None if path is None else checks.path("path", path)
    if place is not None:
        check_place(place, "curve.png", overwrite=overwrite)
    figure = figure_of({"": history})
    if place is not None:
        write_figure(figure, place, overwrite=overwrite)
    return figure


def _draw_losses(axes: Any, history: Any, prefix: str, colour: str) -> None:
    """Draw the loss of the training data, and that of the validation data if there is one."""
    _draw(axes, history.train_loss, f"{prefix}training (mean of the steps)", history, colour)
    if history.validation_loss:
        _draw(axes, history.validation_loss, f"{prefix}validation", history, colour, "--")
    lowest = lowest_epoch(history)
    if lowest is not None:
        label = f"{prefix}lowest validation loss (epoch {lowest})"
        _draw_star(axes, lowest, history.validation_loss[lowest - 1], label, colour)


def _draw(
    axes: Any,
    values: list[float],
    label: str,
    history: Any,
    colour: str,
    linestyle: str | None = None,
) -> None:
    """Draw a value for each epoch as a line."""
    axes.plot(
        range(1, len(values) + 1),
        values,
        color=colour,
        marker="o" if len(history.train_loss) == 1 else "",  # one point makes no line
        linestyle=linestyle,
        label=label,
    )


def _mark_best(axes: Any, history: Any, tested: float | None, prefix: str, colour: str) -> None:
    """Mark the best epoch: by its test accuracy if that is known, else on the curve."""
    at, values = history.best_epoch, history.validation_metric
    label = f"{prefix}test (weights of the best epoch)"
    if at is None or (tested is None and at > len(values)):
        return
    if tested is None:
        tested, label = values[at - 1], f"{prefix}best epoch"
    _draw_star(axes, at, tested, label, colour)


def _draw_star(axes: Any, epoch: int, value: float, label: str, colour: str) -> None:
    axes.plot(
        [epoch], [value], "*", markersize=12, markeredgecolor="black", color=colour, label=label
    )
