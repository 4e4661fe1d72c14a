"""One code of colours for all pictures: docs/_static/live.css has the same for live ones.

Orange is above 0 and blue below; green is a weight from 0 up. Queries, keys, values and attention
weights have a colour each. A scale begins at 0, so that nearly equal numbers look alike.
"""

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

PLUS, MINUS, WEIGHT = "#d55e00", "#0072b2", "#009e73"
SIGNED = LinearSegmentedColormap.from_list("signed", [MINUS, "#ffffff", PLUS])
WEIGHTS = LinearSegmentedColormap.from_list("weights", ["#ffffff", WEIGHT])
for colours in (SIGNED, WEIGHTS):
    mpl.colormaps.register(colours, force=True)  # for a style, which takes names
LETTERS = {"Q": "#5b4bc4", "K": "#946200", "V": "#b8327a", "A": "#00755a"}
"""The colours of queries, keys, values and attention weights, and of their gradients."""
LETTERS_IN_THE_DARK = {"Q": "#a79bff", "K": "#f0b429", "V": "#ff8fc0", "A": "#3fd0a4"}


def draw_bars(axis: Axes, values: NDArray[Any], kind: str = "value") -> None:
    """Draw bars at 1, 2, ... of a "value", hollow ones of a "gradient", or green "weight"s."""
    by_sign = [PLUS if value >= 0.0 else MINUS for value in values]
    places = range(1, len(values) + 1)
    if kind == "gradient":
        axis.bar(places, values, color="none", edgecolor=by_sign, linewidth=1.8)
    else:
        axis.bar(places, values, color=WEIGHT if kind == "weight" else by_sign)
    axis.axhline(0.0, lw=0.8, c="black")


def say_scale(figure: Figure, *, limit: float | None = None, weight: float | None = None) -> None:
    """Write below a picture what its colours mean, and which numbers have the full colour."""
    phrases = []
    if limit is not None:
        phrases.append(f"orange: above 0, blue: below 0, full colour at ±{limit:g}")
    if weight is not None:
        phrases.append(f"green: a weight, full colour at {weight:g}")
    figure.supxlabel("; ".join(phrases), fontsize=8)
