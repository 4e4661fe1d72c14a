"""Digits as strokes between 0 and 1, and a mouse that draws them."""

from typing import Any

import numpy as np

Stroke = list[tuple[float, float]]


def arc(x: float, y: float, rx: float, ry: float, begin: float, end: float) -> Stroke:
    """Return a piece of an ellipse, between two angles in degrees."""
    return [(x + rx * np.cos(t), y + ry * np.sin(t)) for t in np.radians(np.linspace(begin, end))]


DIGITS: dict[str, list[Stroke]] = {
    "0": [arc(0.5, 0.5, 0.22, 0.33, -90, 270)],
    "2": [[*arc(0.5, 0.33, 0.2, 0.18, 180, 380), (0.33, 0.85), (0.72, 0.85)]],
    "3": [arc(0.48, 0.32, 0.2, 0.17, 200, 430) + arc(0.48, 0.66, 0.22, 0.19, -80, 150)],
    "4": [[(0.58, 0.15), (0.3, 0.6), (0.75, 0.6)], [(0.62, 0.4), (0.62, 0.85)]],
    "5": [
        [(0.7, 0.15), (0.36, 0.15), (0.34, 0.45), *arc(0.48, 0.63, 0.22, 0.21, -110, 150)],
    ],
    "7": [[(0.3, 0.17), (0.7, 0.17), (0.45, 0.85)]],
}


def draw(page: Any, strokes: list[Stroke]) -> None:
    """Draw with the mouse on the field."""
    box = page.locator(".paper").bounding_box()
    at = [
        [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        for stroke in strokes
    ]
    for stroke in at:
        page.mouse.move(*stroke[0])
        page.mouse.down()
        for point in stroke[1:]:
            page.mouse.move(*point)
        page.mouse.up()
