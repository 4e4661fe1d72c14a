"""Pictures of one tensor's gradient: beside the derivative, its errors, and where they are."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

import numpy as np

from npformer.proof.entries import STEPS, Entries
from npformer.tasks.reports.elements import Child, e
from npformer.tasks.reports.plots import MARKS, Axis, Points, plot
from npformer.tasks.reports.png import data_address, shrink

LEAST = 1e-17
"""Errors below are drawn at the lower edge: 0 has no logarithm."""

DARKEST, BRIGHTEST = -12.0, 0.0
"""Decades of the relative error at the ends of the map's colours."""

SIDE = 128
"""Rows and columns of the largest map."""


def scatter(entries: Entries, tolerance: float) -> Element | None:
    """Return a plot of the backward pass over the differences, with the line y = x."""
    known = np.isfinite(entries.derivative)
    of_entries = known.any()
    if of_entries:
        numeric, analytic = entries.derivative[known], entries.gradient[known]
        corners, zeros = entries.corners[known], entries.zeros[known]
        wrong = ~(entries.error[known] <= tolerance)
    else:
        analytic, numeric = entries.along_directions
        corners = zeros = np.zeros(len(analytic), dtype=bool)
        wrong = ~(np.abs(analytic - numeric) <= tolerance * entries.scale)
    finite = np.concatenate([analytic[np.isfinite(analytic)], numeric[np.isfinite(numeric)]])
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    margin = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
    low, high = low - margin, high + margin
    right = ~wrong & ~corners & ~zeros
    label = f"{len(analytic)} points, {wrong.sum()} of them off the line y = x"
    picture = plot(
        label,
        Axis("difference", low, high),
        Axis("backward", low, high),
        [
            Points(numeric[right], analytic[right], "right"),
            Points(numeric[zeros & ~wrong], analytic[zeros & ~wrong], "zero", "square"),
            Points(numeric[corners], analytic[corners], "corner", "cross"),
            Points(numeric[wrong & ~corners], analytic[wrong & ~corners], "wrong"),
        ],
        {"diagonal": ((low, low), (high, high))},
    )
    points = "entry" if of_entries else "random direction"
    return _figure(
        picture,
        "Backward over difference",
        f"A point for each {points}; on the line y = x the two agree.",
    )


def errors_plot(
    entries: Entries, tolerance: float, complex_tolerance: float | None
) -> Element | None:
    """Return a plot of the relative error of each entry on a logarithmic axis."""
    known = np.flatnonzero(np.isfinite(entries.derivative))
    if not known.size:
        return None
    errors, corners = entries.error.flat[known], entries.corners.flat[known]
    exact = np.flatnonzero(np.isfinite(entries.exact) & ~entries.corners)
    complex_errors = entries.complex_error.flat[exact]
    wrong = ~(errors <= tolerance) & ~corners
    zeros = entries.zeros.flat[known] & ~wrong & ~corners
    right = ~wrong & ~corners & ~zeros
    highest = 10.0 * max(1.0, float(errors[np.isfinite(errors)].max(initial=1.0)))
    x_axis = Axis("entry", -0.5, max(entries.gradient.size - 0.5, 0.5))
    ends = x_axis.low, x_axis.high
    lines = {"limit": ((ends[0], tolerance), (ends[1], tolerance))}
    if exact.size and complex_tolerance is not None:
        lines["exact"] = ((ends[0], complex_tolerance), (ends[1], complex_tolerance))
    picture = plot(
        f"relative errors of {known.size} entries, {wrong.sum()} above the tolerance",
        x_axis,
        Axis("relative error", LEAST, highest, log=True),
        [
            Points(exact, complex_errors, "exact"),
            Points(known[right], errors[right], "right"),
            Points(known[zeros], errors[zeros], "zero", "square"),
            Points(known[corners], np.full(int(corners.sum()), LEAST), "corner", "cross"),
            Points(known[wrong], errors[wrong], "wrong"),
        ],
        lines,
    )
    of_exact = " and the complex step" if exact.size else ""
    return _figure(
        picture,
        "Error of each entry",
        f"Against differences{of_exact}; dashed is what passes. Errors below {LEAST:g} are at the "
        "lower edge.",
    )


def steps_plot(entries: Entries, tolerance: float) -> Element | None:
    """Return a plot of the errors of central differences over the step, for some entries."""
    steps, groups, places, nearest = np.array(STEPS), [], [], []
    highest = 1.0
    for index in entries.entries_to_step():
        errors = entries.errors_by_step(index)
        is_right = not entries.error.flat[index] > tolerance  # NaN where it was not compared
        kinds = ["exact", "right" if is_right else "wrong"]
        for kind, column in zip(kinds, errors.T, strict=True):
            finite = np.isfinite(column)
            groups.append(Points(steps[finite], column[finite], kind, joined=True))
            highest = max(highest, float(column[finite].max(initial=0.0)))
        if np.isfinite(errors[:, 1]).any():
            places.append([int(i) for i in np.unravel_index(index, entries.gradient.shape)])
            nearest.append(f"{np.nanmin(errors[:, 1]):.1e}")
    if not places:
        return None
    picture = plot(
        f"entries {places}: differences come within {', '.join(nearest)} of backward",
        Axis("step", STEPS[-1], STEPS[0], log=True),
        Axis("relative error", LEAST, 10.0 * highest, log=True),
        groups,
    )
    numbers = " and ".join(map(str, places))
    has_exact = any(group.kind == "exact" and len(group.x) for group in groups)
    and_exact = " and from the complex step" if has_exact else ""
    words = (
        f"Of central differences at {numbers}, from backward{and_exact}. A right gradient gives a "
        "V: small steps round, large ones truncate, unless the function is linear. A wrong one "
        "stays away at every step."
    )
    return _figure(picture, "Error over the step", words)


def error_map(entries: Entries) -> Element | None:
    """Return a picture of the tensor in which each entry has the colour of its error."""
    known = np.isfinite(entries.derivative) & ~entries.corners
    if known.sum() < 4:
        return None
    with np.errstate(divide="ignore"):
        decades = np.log10(np.maximum(entries.error, 10.0**DARKEST))
    shape = (-1, entries.gradient.shape[-1])
    shown, shown_known = shrink(decades.reshape(shape), known.reshape(shape), SIDE)
    address = data_address(shown, shown_known, "weights", DARKEST, BRIGHTEST)
    rows, columns = decades.reshape(shape).shape
    height = min(max(rows / columns, 0.12), 1.0)
    alt = f"errors of {rows} x {columns} entries, from dark, 1e-12, to bright, 1"
    image = e("img", src=address, alt=alt, style=f"aspect-ratio: 1 / {height:.3g}; width: 100%")
    block = math.ceil(max(rows, columns) / SIDE)
    words = "Dark is at most 1e-12, yellow 1 or more; grey is at a corner or not compared. "
    words += f"Columns are the last axis of {entries.gradient.shape}."
    words += f" A pixel is the largest of {block} x {block}." if block > 1 else ""
    return _figure(image, "Where the errors are", words)


def worst_entries(entries: Entries, most: int) -> list[list[Child]]:
    """Return the entries with the largest errors, and what was computed of each."""
    known = np.flatnonzero(np.isfinite(entries.derivative))
    errors = np.nan_to_num(entries.error.flat[known], nan=np.inf)
    rows: list[list[Child]] = []
    for i in known[np.argsort(-errors, kind="stable")][:most]:
        place = [int(k) for k in np.unravel_index(i, entries.gradient.shape)]
        exact = entries.exact.flat[i]
        note = "corner" if entries.corners.flat[i] else ""
        if entries.zeros.flat[i]:
            note = "zero"
        rows.append(
            [
                str(place),
                note,
                f"{entries.gradient.flat[i]:.9g}",
                f"{entries.derivative.flat[i]:.9g}",
                "-" if np.isnan(exact) else f"{exact:.9g}",
                f"{entries.error.flat[i]:.1e}",
            ]
        )
    return rows


def legend() -> Element:
    """Return what the marks of all plots mean."""
    meanings = {
        "right": ("dot", "within the tolerance"),
        "wrong": ("dot", "wrong"),
        "exact": ("dot", "against the complex step"),
        "zero": ("square", "both are 0, which shows little"),
        "corner": ("cross", "no derivative: the slopes on both sides differ"),
    }
    items = []
    for kind, (mark, words) in meanings.items():
        sign = e("path", d=f"M8 8{MARKS[mark]}", class_=f"{mark} {kind}")
        picture = e("svg", sign, viewBox="0 0 16 16", class_="plot sign")
        picture.set("aria-hidden", "true")
        items.append(e("li", picture, f" {words}"))
    return e("ul", items, class_="legend marks")


def _figure(picture: Element, title: str, words: str) -> Element:
    return e("figure", picture, e("figcaption", e("b", title), f" {words}"), class_="card")
