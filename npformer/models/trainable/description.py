"""What a model is, in a few lines for people."""

from __future__ import annotations

from npformer.core import Layer
from npformer.core.support.tables import Table, as_html, as_text

ADVICE = "npformer.summary(model) lists every layer"


def describe_model(model: Layer) -> str:
    """Return the size of a model, and a line for each layer that is directly inside it."""
    return as_text([_layers(model)], [ADVICE], "<<>").strip()


def model_as_html(model: Layer) -> str:
    """Return the same as HTML, for notebooks."""
    return as_html([_layers(model)], [ADVICE])


def _layers(model: Layer) -> Table:
    rows: list[tuple[str, ...]] = [("layer", "kind", "parameters")]
    for name, child in model.children():
        if isinstance(child, Layer):
            rows.append((name, type(child).__name__, f"{child.n_parameters():,}"))
    title = (
        f"{type(model).__name__}: {model.n_parameters():,} trained parameters, {model.dtype}, "
        f"{model.backend}"
    )
    return title, rows
