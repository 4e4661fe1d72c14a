"""Plots of points as SVG, whose colours are those of the page, light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from npformer.tasks.reports.elements import e

WIDTH, HEIGHT = 340, 250
"""Of a plot, in units that the page scales."""

LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 44
"""Margins, for the numbers and names of the axes."""

MARKS = {
    "cross": "m-3.5-3.5l7 7m0-7l-7 7",
    "square": "m-3-3h6v6h-6z",
    "dot": "h0",
}
"""How a point is drawn, as steps of a path from its place; the style makes dots round."""

MOST_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """A range of numbers along one side of a plot, on a linear or a logarithmic scale."""

    name: str
    low: float
    high: float
    log: bool = False

    def share(self, values: np.ndarray) -> np.ndarray:
        """Return where values lie, from 0 at the low end to 1; outside they are moved to an end."""
        clipped = np.clip(np.nan_to_num(values, nan=self.high), self.low, self.high)
        if self.log:
            return np.asarray(np.log(clipped / self.low) / math.log(self.high / self.low))
        return np.asarray((clipped - self.low) / (self.high - self.low))

    def ticks(self) -> list[float]:
        """Return some round numbers in the range."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            stride = max(1, math.ceil((last - first + 1) / MOST_TICKS))
            return [10.0**k for k in range(first, last + 1, stride)]
        step = _round_step((self.high - self.low) / (MOST_TICKS - 1))
        return [k * step for k in range(math.ceil(self.low / step), int(self.high // step) + 1)]


def _round_step(step: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(k * power for k in (1.0, 2.0, 5.0, 10.0) if k * power >= step * (1.0 - 1e-9))


@dataclass(frozen=True)
class Points:
    """Some points of a plot that look alike."""

    x: np.ndarray
    y: np.ndarray
    kind: str  # the class of the style: right, wrong, corner, exact, ...
    mark: str = "dot"
    joined: bool = False  # by a line


def plot(
    label: str,
    x_axis: Axis,
    y_axis: Axis,
    points: Iterable[Points],
    lines: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] | None = None,
) -> Element:
    """Return a plot; `label` describes it, and `lines` has two ends by the class of each line."""
    svg = e(
        "svg",
        _frame(x_axis, y_axis),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        class_="plot",
    )
    svg.set("aria-label", label)
    for kind, ends in (lines or {}).items():
        places = _places(np.array(ends), x_axis, y_axis)
        svg.append(e("path", d=_join(places), class_=f"line {kind}"))
    for group in points:
        places = _places(np.stack([group.x, group.y], axis=1), x_axis, y_axis)
        if group.joined and len(places) > 1:
            svg.append(e("path", d=_join(places), class_=f"joined {group.kind}"))
        if len(places):
            steps = "".join(f"M{x:.1f} {y:.1f}{MARKS[group.mark]}" for x, y in places)
            svg.append(e("path", d=steps, class_=f"{group.mark} {group.kind}"))
    return svg


def _places(xy: np.ndarray, x_axis: Axis, y_axis: Axis) -> np.ndarray:
    """Return where points lie in the picture, (points, 2)."""
    x = LEFT + (WIDTH - LEFT - RIGHT) * x_axis.share(xy[:, 0])
    y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y_axis.share(xy[:, 1])
    return np.stack([x, y], axis=1)


def _join(places: np.ndarray) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _frame(x_axis: Axis, y_axis: Axis) -> list[Element]:
    """Return the grid, the numbers and the names of both axes."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    elements = []
    for tick in x_axis.ticks():
        x = _places(np.array([[tick, y_axis.low]]), x_axis, y_axis)[0, 0]
        elements.append(e("path", d=f"M{x:.1f} {TOP}V{bottom}", class_="grid"))
        words = _number(tick, x_axis)
        elements.append(e("text", words, x=f"{x:.1f}", y=str(bottom + 16), class_="middle"))
    for tick in y_axis.ticks():
        y = _places(np.array([[x_axis.low, tick]]), x_axis, y_axis)[0, 1]
        elements.append(e("path", d=f"M{LEFT} {y:.1f}H{right}", class_="grid"))
        words = _number(tick, y_axis)
        elements.append(e("text", words, x=str(LEFT - 5), y=f"{y + 4:.1f}", class_="end"))
    middle = (LEFT + right) // 2
    name = e("text", x_axis.name, x=str(middle), y=str(HEIGHT - 6), class_="middle name")
    height = (TOP + bottom) // 2
    turned = e("text", y_axis.name, x="12", y=str(height), class_="middle name")
    turned.set("transform", f"rotate(-90 12 {height})")
    return [*elements, name, turned]


def _number(value: float, axis: Axis) -> str:
    if axis.log:
        return f"1e{round(math.log10(value))}"
    return f"{value:.4g}" if abs(value) > 1e-9 * (axis.high - axis.low) else "0"
