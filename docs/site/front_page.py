"""The first page of the site: three doors, and one training step that moves.

On the page, ``<!-- doors -->`` makes the list below it three boxes, and ``<!-- moving step -->``
becomes the arrays of `docs.site.one_step` in a row forward, from the image to the probabilities,
and in one backward below it. A script goes from array to array; without it all of them are links.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from docutils.nodes import make_id

from docs.site.training_step import NOTHING, heat_map, known, number, shades

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "index"
STEP_PAGE = Path(__file__).resolve().parents[1] / "training_step.md"
BOX = re.compile(r"^### (?P<number>\d+)\. (?P<title>.+)$", re.MULTILINE)
DOORS = "<!-- doors -->"
MOVING_STEP = "<!-- moving step -->"


TITLE = '<span><b>One training step</b><span class="more">, with its real numbers</span></span>'


class Stage(NamedTuple):
    """An array of the step, its box on the page of the whole step, its formula, and what it is."""

    array: str
    box: int
    formula: str
    sentence: str


FORWARD = [
    Stage(
        "image", 1, "image", "A picture of a {label} goes in: eight rows of pixels, eight tokens."
    ),
    Stage(
        "x",
        3,
        "x = image W + b + positions",
        "A linear map gives each row eight features. Its position is added.",
    ),
    Stage(
        "q",
        4,
        "q = x W_Q, k = x W_K, v = x W_V",
        "Each row gets a query, a key and a value. These are the queries.",
    ),
    Stage(
        "S",
        5,
        "S = q kᵀ / √d_head",
        "Two heads compare the query of each row with the keys of all rows.",
    ),
    Stage(
        "A",
        6,
        "A = softmax(S)",
        "Scores become attention weights: how much each row takes from every row.",
    ),
    Stage(
        "heads",
        7,
        "heads = A v",
        "With these weights, each row becomes an average of all values.",
    ),
    Stage(
        "hidden",
        12,
        "hidden = gelu(h W_1 + b_1)",
        "After a sum and a layer norm, each row goes through a small network.",
    ),
    Stage("z", 15, "z = norm(h + f)", "A second sum and a second layer norm end the block."),
    Stage(
        "logits",
        17,
        "logits = mean(z) W + b",
        "The mean of all rows becomes a score for each of the ten digits.",
    ),
    Stage(
        "p",
        18,
        "p = softmax(logits), loss = -log p[{label}]",
        "The untrained model says {guess}, with {share:.0%}. It is a {label}: the loss is {loss}.",
    ),
]
BACKWARD = [
    Stage(
        "dlogits",
        19,
        "dlogits = p - one_hot({label})",
        "The way back begins: the probabilities, less 1 at the right digit.",
    ),
    Stage(
        "dpooled",
        20,
        "dpooled = dlogits Wᵀ",
        "Back through the last linear map, to the mean of all rows.",
    ),
    Stage("dz", 21, "dz = dpooled / 8", "The mean hands the same gradient to all eight rows."),
    Stage(
        "dhidden",
        24,
        "dhidden = dt W_2ᵀ",
        "Through the second layer norm, and back into the network.",
    ),
    Stage(
        "dheads",
        29,
        "dheads = ds W_Oᵀ",
        "Through the first layer norm, and back into the heads.",
    ),
    Stage(
        "dA",
        30,
        "dA = dheads vᵀ",
        "Where it is blue, a larger attention weight would lower the loss.",
    ),
    Stage(
        "dS",
        31,
        "dS = A (dA - sum(A dA))",
        "Back through softmax: the numbers of each row now sum to 0.",
    ),
    Stage(
        "dW_Q",
        33,
        "dW_Q = xᵀ dq",
        "The weights of the queries, too, learn in which direction to go.",
    ),
    Stage(
        "dx",
        33,
        "dx = ds + dx_Q + dx_K + dx_V",
        "x was used four times, so four gradients are added.",
    ),
    Stage(
        "step",
        36,
        "weights = weights + step",
        "Adam moves each weight a little. The loss falls from {loss} to {loss_after}. Again!",
    ),
]


def with_figures(text: str, address: str) -> str:
    """Return the page's text with doors and the moving step; `address` is of the whole step."""
    return text.replace(DOORS, "{.doors}").replace(MOVING_STEP, moving_step(address))


def facts() -> dict[str, Any]:
    """Return the numbers that the sentences name."""
    p = known()["p"]
    return {
        "label": int(known()["label"]),
        "guess": int(p.argmax()),
        "share": float(p.max()),
        "loss": f"{known()['loss']:.3f}",
        "loss_after": f"{known()['loss_after']:.3f}",
    }


def titles() -> dict[int, str]:
    """Return the titles of the boxes on the page of the whole step, by their numbers."""
    boxes = BOX.finditer(STEP_PAGE.read_text("utf-8"))
    return {int(box["number"]): box["title"] for box in boxes}


def moving_step(address: str) -> str:
    """Return the HTML of the step: a row forward, a row backward, and a panel for each array."""
    stages = [*FORWARD, *BACKWARD]
    links = [f"{address}#{make_id(f'{stage.box}. {titles()[stage.box]}')}" for stage in stages]
    boxes = [_box(stage, link) for stage, link in zip(stages, links, strict=True)]
    panels = [_panel(stage, link) for stage, link in zip(stages, links, strict=True)]
    panels[0] = panels[0].replace('class="panel"', 'class="panel now"')
    parts = [
        '<section class="moving-step" aria-label="One training step, array by array">',
        f'<div class="bar">{TITLE}</div>',
        f'<ol class="way forward" aria-label="forward">{"".join(boxes[: len(FORWARD)])}</ol>',
        f'<ol class="way backward" aria-label="backward">{"".join(boxes[len(FORWARD) :])}</ol>',
        f'<div class="panels">{"".join(panels)}</div>',
        "</section>",
    ]
    return "\n".join(parts)


def _box(stage: Stage, link: str) -> str:
    label = escape(f"{stage.array}: {titles()[stage.box]}")
    picture = thumbnail(known()[stage.array])
    name = f"<span>{stage.array}</span>"
    return f'<li><a href="{link}" aria-label="{label}" title="{label}">{picture}{name}</a></li>'


def _panel(stage: Stage, link: str) -> str:
    array = known()[stage.array]
    shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
    return (
        f'<div class="panel"><div class="said">'
        f"<p><b>{stage.array}</b> ({shape}), full colour {number(np.abs(array).max())}</p>"
        f"<p><code>{escape(stage.formula.format(**facts()))}</code></p>"
        f"<p>{escape(stage.sentence.format(**facts()))}</p>"
        f'<p><a href="{link}">{stage.box}. {escape(titles()[stage.box])}</a></p></div>'
        f'<div class="map">{heat_map(stage.array, array)}</div></div>'
    )


def thumbnail(array: Any) -> str:
    """Return a small square of an array: of the first head, and a vector as stripes."""
    matrix = array[0] if array.ndim == 3 else np.atleast_2d(array)
    n_rows, n_columns = matrix.shape
    cells = "".join(shades(matrix / max(np.abs(matrix).max(), NOTHING)))
    size = f'viewBox="0 0 {n_columns} {n_rows}" preserveAspectRatio="none"'
    return f'<svg {size} aria-hidden="true">{cells}</svg>'


def _replace(app: Sphinx, page: str, source: list[str]) -> None:
    if page == PAGE and app.builder.format == "html":
        source[0] = with_figures(source[0], app.builder.get_target_uri(STEP_PAGE.stem))


def _dress(app: Sphinx, page: str, template: str, context: Any, doctree: Any) -> None:
    if page == PAGE:
        app.add_css_file("training_step.css")
        app.add_css_file("front_page.css")
        app.add_js_file("front_page.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the figures when the page is read, and add its style and its script."""
    app.connect("source-read", _replace)
    app.connect("html-page-context", _dress)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
