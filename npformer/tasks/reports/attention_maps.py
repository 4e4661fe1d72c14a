"""Attention weights of a model that writes: an HTML file with tokens along the axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from npformer.core import to_numpy
from npformer.layers import CrossAttention
from npformer.mixers import Mixer
from npformer.tasks.reports.axes import MOST_TOKENS, add_axes, heads
from npformer.tasks.reports.elements import TEXTS, document, e
from npformer.tasks.reports.png import data_address, scale_for
from npformer.training.inspection.calls import Call
from npformer.training.inspection.explain import matrices_of
from npformer.training.inspection.trace import trace
from npformer.training.storage.outputs import write_output


class WrittenText(NamedTuple):
    """One sequence that a model reads or writes: its title, ids, and names of tokens."""

    title: str
    x: Any  # ids (1, length), or (source, target) ids
    tokens: tuple[Sequence[str], ...]  # of each input


def write_report(
    model: Any, samples: Sequence[WrittenText], place: Path, title: str, *, overwrite: bool
) -> Path:
    """Write the attention weights for some sequences, and return the file's path.

    Parameters
    ----------
    model : LanguageModel or EncoderDecoder
    samples : sequence of WrittenText
    place : path
        Checked already, before the samples were made.
    title : str
    overwrite : bool
    """
    shown = [_sample(model, sample) for sample in samples]
    page = document(title, e("p", TEXTS["written"]["about"]), e("main", shown))
    write_output(place, page, overwrite=overwrite)
    return place


def _sample(model: Any, written: WrittenText) -> Element:
    headings = {"target": TEXTS["written"]["text"]}
    if isinstance(written.x, tuple):
        headings = TEXTS["written"]["kinds"]
    figures_of_kind: dict[str, list[Element]] = {kind: [] for kind in headings}
    for call in trace(model, written.x):
        if isinstance(call.layer, Mixer | CrossAttention):
            kind = _kind_of(call, written)
            figures_of_kind[kind] += _figures(call, kind, written)
    children = [
        e("div", e("h3", headings[kind]), figures)
        for kind, figures in figures_of_kind.items()
        if figures
    ]
    return e("section", e("h2", written.title), children)


def _kind_of(call: Call, written: WrittenText) -> str:
    """Return what a layer mixes: the source, the target, or one with the other ("cross")."""
    if isinstance(call.layer, CrossAttention):
        return "cross"
    of_source = isinstance(written.x, tuple) and call.name.startswith("encoder")
    return "source" if of_source else "target"


def _figures(call: Call, kind: str, written: WrittenText) -> list[Element]:
    """Return the matrices of a layer, with the tokens that they mix along their axes."""
    source, target = written.tokens[0], written.tokens[-1]
    rows = source if kind == "source" else target
    columns = target if kind == "target" else source
    matrices = np.asarray(to_numpy(matrices_of(call))[0]).real
    figures = [_figure(matrix, rows, columns, head) for head, matrix in enumerate(matrices)]
    return heads(call, figures)


def _figure(matrix: np.ndarray, rows: Sequence[str], columns: Sequence[str], head: int) -> Element:
    """Return the matrix of a head, with a name for each row and column."""
    matrix = matrix[:MOST_TOKENS, :MOST_TOKENS]
    rows, columns = rows[: len(matrix)], columns[: matrix.shape[1]]
    scale, low, high = scale_for(matrix)
    address = data_address(matrix, np.ones(matrix.shape, bool), scale, low, high)
    label = f"head {head}: {len(rows)} rows, {len(columns)} columns"
    caption = e("figcaption", e("b", f"head {head}"), f" up to {high:.2f}")
    return e("figure", add_axes(address, rows, columns, label), caption, class_="map")
