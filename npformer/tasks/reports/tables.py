"""The sections of a report that are tables: models, tensors, gradients, mistakes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

import numpy as np

from npformer.core import to_numpy
from npformer.tasks.reports.answers import Answers
from npformer.tasks.reports.elements import Child, breakable, e, section, table
from npformer.tasks.reports.views import answer, sample_view, target
from npformer.training.inspection.trace_table import number

MOST_CLASSES = 32
"""Up to this many classes there is a confusion matrix; for more, a list."""

MOST_CONFUSIONS = 20
WORST = 12

DECADES = 6
"""Range of the bars of gradient norms, from the largest norm down."""


def show_results(opening: Sequence[str | Sequence[Sequence[str]]]) -> Element:
    """Return the paragraphs and tables that a report begins with."""
    children = [
        e("p", block) if isinstance(block, str) else table(block[0], block[1:]) for block in opening
    ]
    return section("results", children)


def models_section(models: Sequence[Answers], notes: Mapping[str, str]) -> Element:
    """Return a table of the models and of how well they do."""
    rows = []
    for judged in models:
        config = judged.model.config
        rows.append(
            [
                judged.name,
                ", ".join(dict.fromkeys(config.mixers())),
                "-" if math.isnan(judged.accuracy) else f"{judged.accuracy:.4f}",
                f"{judged.loss:.4f}",
                f"{judged.model.n_parameters():,}",
                str(config.n_layers),
                str(config.n_heads),
                str(config.d_model),
            ]
        )
    inputs = models[0].samples.inputs[0]
    head = ["model", "mixer", "accuracy", "loss", "parameters", "layers", "heads", "d_model"]
    remarks = [e("p", f"{name}: {words}", class_="note") for name, words in notes.items()]
    return section(
        "models",
        table(head, rows, words=2),
        remarks,
        n=len(inputs.x),
        shape=tuple(inputs.x.shape),
        padded="" if inputs.padding is None else ", with padding",
    )


def tensors_section(models: Sequence[Answers], chosen: Sequence[int]) -> Element:
    """Return the tables of each model's trace, and its parameters with their gradients."""
    tables = [_tensor_tables(judged, opened=i == 0) for i, judged in enumerate(models)]
    return section("tensors", tables, n=len(chosen))


def _tensor_tables(judged: Answers, opened: bool) -> Element:
    traced = judged.trace
    norms = traced.gradient_norms
    parameters = judged.model.parameters()
    largest = max((n for n in norms.values() if math.isfinite(n)), default=0.0)
    rows: list[list[Child]] = []
    for name, norm in norms.items():
        array = parameters[name]
        size = float(np.linalg.norm(to_numpy(array).astype("float64").reshape(-1)))
        shape = str(tuple(array.shape))
        rows.append([breakable(name), shape, number(size), number(norm), _bar(norm, largest)])
    summary = f"{judged.name}: loss {traced.loss:.4g}, {traced.bytes_cached:,} bytes cached"
    tables = []
    for caption, (head, *body) in traced.tables()[:2]:
        lines: list[list[Child]] = [[breakable(n, kind), *cells] for n, kind, *cells in body]
        tables.append(table([head[0], *head[2:]], lines, caption, words=2))
    head = ("parameter", "shape", "norm", "norm of the gradient", f"of {DECADES} decades")
    caption = "parameters: the norm is the root of the sum of squares; bars are logarithmic"
    tables.append(table(head, rows, caption, words=2))
    details = e("details", e("summary", summary), tables)
    if opened:
        details.set("open", "open")
    return details


def _bar(norm: float, largest: float) -> Element | str:
    """Return a bar as long as the logarithm of a norm; words where there is no logarithm."""
    if not math.isfinite(norm):
        return "not finite"
    if norm == 0.0:
        return "0"
    share = 1.0 + math.log10(norm / largest) / DECADES
    return e("div", e("span", style=f"width: {100 * max(share, 0.01):.0f}%"), class_="bar")


def mistakes_section(models: Sequence[Answers], left_out: list[str]) -> Element:
    """Return the confusion matrix and the worst mistakes of each model."""
    children = []
    for judged in models:
        confusions = _confusions(judged, left_out)
        children.append(e("div", e("h3", judged.name), confusions, _worst(judged)))
    return section("mistakes", children)


def _confusions(judged: Answers, left_out: list[str]) -> Element | None:
    if judged.predicted is None:
        left_out.append(
            f"{judged.name}: no accuracy and no confusion matrix, as it predicts numbers, not "
            "classes"
        )
        return None
    called, confusions, n = judged.called, judged.confusions(), judged.model.n_classes
    if n > MOST_CLASSES:
        left_out.append(f"{judged.name}: no confusion matrix, as it would have {n} rows")
        wrong = [(t, p, k) for t, p, k in confusions if t != p][:MOST_CONFUSIONS]
        rows = [[called.label(t), called.label(p), str(k)] for t, p, k in wrong]
        return table(["label", "predicted", "how often"], rows, "most frequent confusions", words=2)
    counts = np.zeros((n, n + 1), dtype="int64")
    for true, predicted, k in confusions:
        counts[true, predicted] = k  # -1, the last column: no prediction
    columns = [*range(n), -1] if counts[:, -1].any() else [*range(n)]
    table_rows: list[list[Child]] = []
    for true in range(n):
        total = max(int(counts[true].sum()), 1)
        cells = [_count(int(counts[true, p]), total, p == true) for p in columns]
        table_rows.append([called.label(true), *cells])
    head = ["", *(called.label(p) for p in columns)]
    caption = "confusion matrix: a row for each label, a column for each prediction"
    box = table(head, table_rows, caption)
    box.set("class", "confusion")
    return box


def _count(count: int, total: int, right: bool) -> Element | str:
    if not count:
        return "·"
    colour = "33, 125, 190" if right else "214, 80, 50"
    return e("b", str(count), style=f"background: rgba({colour}, {0.15 + 0.5 * count / total:.2f})")


def _worst(judged: Answers) -> list[Element]:
    worst = judged.worst(WORST)
    of = "Largest losses" if judged.predicted is None else "Worst mistakes"
    if not worst:
        return [e("p", "No mistakes: every label was predicted correctly.")]
    items = []
    for i in worst:
        words = [f"sample {i}", target(judged, i), answer(judged, i)]
        caption = e("p", "; ".join(word for word in words if word))
        text = judged.called.sample(i)
        named = text and np.asarray(judged.samples.y).ndim == 1  # else each token has its label
        shown = e("p", text, class_="text") if named else sample_view(judged, i, mark=True)
        items.append(e("li", shown, caption))
    heading = e("h4", f"{of} ({len(worst)}), largest loss first")
    return [heading, e("ul", items, class_="worst")]
