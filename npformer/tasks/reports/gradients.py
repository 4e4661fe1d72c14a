"""A page for a gradcheck: each tensor's gradient beside its derivative, in pictures and words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from npformer.proof.report import COLUMNS, GradcheckReport, TensorReport
from npformer.tasks.reports.elements import Child, document, e, table
from npformer.tasks.reports.gradient_plots import (
    error_map,
    errors_plot,
    legend,
    scatter,
    steps_plot,
    worst_entries,
)
from npformer.tasks.reports.museum_links import museum_link
from npformer.tasks.reports.report import check_path_of_report
from npformer.training.storage.outputs import write_output

STYLES = ("report.css", "gradients.css")

MOST_STEPPED = 24
"""The most tensors whose differences are taken over all steps; wrong ones come first."""

WORST = 12
"""The most entries in the table of a tensor."""


def write_gradients(
    report: GradcheckReport, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write one HTML file that shows what a gradcheck compared, and return its path.

    Parameters
    ----------
    report : GradcheckReport
    path : str or path
    overwrite : bool
        Whether to replace an existing file.

    Notes
    -----
    The file has no script and needs no other file and no network. For each tensor it shows the
    backward pass over the differences, the error of each entry, a map of the errors, and the errors
    of central differences over the step, for which the function is evaluated anew.
    """
    place = check_path_of_report(path, overwrite)
    write_output(place, _page(report), overwrite=overwrite)
    return place


def write_index(
    reports: Mapping[str, tuple[GradcheckReport, str]], path: Path, *, overwrite: bool = False
) -> None:
    """Write a page that lists checks: by title, the report, and the file of its page or ""."""
    rows: list[list[Child]] = []
    for title, (report, file) in reports.items():
        name = e("a", title, href=file) if file else title
        verdict = e("b", "FAILED", class_="failed") if not report.passed else "passed"
        patterns = "; ".join(f"{t.name}: {t.pattern}" for t in report.tensors if t.pattern)
        rows.append([name, verdict, e("span", patterns, class_="wrapped"), f"{report.error:.1e}"])
    n_failed = sum(not report.passed for report, _ in reports.values())
    summary = f"{len(rows)} checks, {len(rows) - n_failed} passed, {n_failed} failed."
    head = ["case", "verdict", "what is wrong", "largest error"]
    body = e("main", e("p", summary), table(head, rows, words=3))
    page = document("gradcheck", _reachable(body), styles=STYLES)
    write_output(path, page, overwrite=overwrite)


def _page(report: GradcheckReport) -> bytes:
    title = f"gradcheck of {report.title}: {report.verdict}"
    wrong = report.wrong_tensors()
    first = wrong + [tensor for tensor in report.tensors if tensor not in wrong]
    stepped = {tensor.name for tensor in first[:MOST_STEPPED]}
    names = {tensor.name: f"tensor-{i}" for i, tensor in enumerate(report.tensors)}
    sections = [
        _section(report, tensor, names[tensor.name], tensor.name in stepped)
        for tensor in report.tensors
    ]
    body = e("main", _summary(report, names), sections)
    return document(title, _reachable(body), styles=STYLES)


def _summary(report: GradcheckReport, names: Mapping[str, str]) -> list[Child]:
    """Return what is said of all tensors together."""
    exact = report.complex_tolerance
    words = f"An error passes up to {report.tolerance:g} against central differences"
    words += "." if exact is None else f", and up to {exact:g} against the complex step."
    rows: list[list[Child]] = []
    for tensor in report.tensors:
        cells = [write(tensor) for write in COLUMNS.values()]
        link = e("a", tensor.name, href=f"#{names[tensor.name]}")
        rows.append([link, _verdict(report, tensor), *cells[1:]])
    head = ["tensor", "verdict", *list(COLUMNS)[1:]]
    twins = [
        e("p", f"Fast twin in {twin.dtype}: at most {twin.error:.1e} from the layer.")
        for twin in report.twins
    ]
    reason = f"There is no complex step: {report.not_analytic}." if report.not_analytic else ""
    return [
        e("p", words),
        e("p", reason) if reason else None,
        table(head, rows, words=4),
        legend(),
        _list("Wrong besides" if report.derivative_alone else "Broken rules", report.broken_rules),
        _list("Protocol", report.protocol),
        _list("Notes", report.notes),
        *twins,
    ]


def _list(heading: str, sentences: Sequence[str]) -> Element | None:
    """Return a section with a list, or None if there is nothing to say."""
    if not sentences:
        return None
    items = [e("li", sentence) for sentence in sentences]
    return e("section", e("h2", heading), e("ul", items))


def _verdict(report: GradcheckReport, tensor: TensorReport) -> Element | str:
    is_right = tensor.passes(report.tolerance, report.complex_tolerance)
    return "right" if is_right else e("b", "wrong", class_="failed")


def _section(report: GradcheckReport, tensor: TensorReport, place: str, stepped: bool) -> Element:
    """Return what is shown of one tensor."""
    heading = e("h2", f"{tensor.name} ", e("small", str(tensor.shape)))
    corners = f"; {tensor.no_derivative} without a derivative" if tensor.no_derivative else ""
    words = f"{tensor.checked} compared, relative error {tensor.error:.1e}{corners}."
    verdict = e("p", _verdict(report, tensor), f": {words}")
    return e(
        "section", heading, verdict, _pattern(tensor), _figures(report, tensor, stepped), id=place
    )


def _pattern(tensor: TensorReport) -> Element | None:
    """Return the kind of error in words, with a link to the museum if it has this bug."""
    if not tensor.pattern:
        return None
    sentence = f"Kind of error: {tensor.pattern}."
    link = museum_link(tensor.kind, tensor.pattern)
    if link is None:
        return e("p", sentence, class_="pattern")
    title, address = link
    return e("p", sentence, " In the museum: ", e("a", title, href=address), class_="pattern")


def _figures(report: GradcheckReport, tensor: TensorReport, stepped: bool) -> list[Any]:
    entries = tensor.entries
    if entries is None:
        return [e("p", "It has no entries.")]
    figures = [
        scatter(entries, report.tolerance),
        errors_plot(entries, report.tolerance, report.complex_tolerance),
        error_map(entries) if entries.gradient.ndim else None,
        steps_plot(entries, report.tolerance) if stepped else None,
    ]
    rows = worst_entries(entries, WORST)
    head = ["entry", "", "backward", "difference", "complex step", "error"]
    listed = e("details", e("summary", "Largest errors"), table(head, rows, words=2))
    return [e("div", figures, class_="cards"), listed if rows else None]


def _reachable(body: Element) -> Element:
    """Return the body after letting the keyboard scroll what scrolls sideways."""
    for element in body.iter("div"):
        if element.get("class") == "scroll":
            element.attrib |= {"tabindex": "0", "role": "region", "aria-label": "table"}
    return body
