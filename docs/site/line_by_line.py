"""A page for each pair of functions, made from its source when the site is built.

Its formulas come first. Then each line that ran stands beside its comment and the numbers that it
made; checks are folded, and helpers open below the line that calls them. The numbers are caught
while the pair runs, so they cannot drift from the code. Below stands PyTorch's form, as the parity
tests have it; where PyTorch is installed, the two are compared here too.
"""

import inspect
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx

from docs.site import in_pytorch
from docs.site.below_title import below_title, chapter_of
from docs.site.formula_text import paragraphs
from docs.site.opened_calls import Caches, lines, numbers, numbers_block
from docs.site.running_examples import RUNNING, running_example
from docs.site.traces import Call, watch
from tests.pairs import FUNCTIONS, NAMES, Example, gradients_of, pairs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "line_by_line"
SOURCE = re.compile(r"<!-- source: npformer/functional/\S+ ([^>]+?) -->")
SMALL = Example(batch=1, length=2, keys=2, n_heads=1, others=3, d_head=3)

READING = (
    "Each line of the code stands beside the numbers that it makes of a small example. Checks of "
    "arguments, lines that this example does not run, and functions that a line calls are folded: "
    "open them with a click, or with Enter."
)


def example(name: str) -> tuple[list[Any], dict[str, Any], Any]:
    """Return inputs, options and dy for a pair."""
    if name in RUNNING:
        return running_example(name)
    inputs, options = pairs(SMALL, "float64")[name]
    inputs = [np.round(x, 2) if x.dtype.kind == "f" else x for x in inputs]
    again = pairs(SMALL, "float64")[name]  # a generator of dropout has drawn by then
    y, _ = FUNCTIONS[name](*inputs, **again[1])
    return inputs, options, np.round(np.random.default_rng(1).normal(size=np.shape(y)), 1)


def page(name: str) -> str:
    """Return the page of a pair."""
    forward, backward = FUNCTIONS[name], FUNCTIONS[f"{name}_backward"]
    inputs, options, dy = example(name)
    caches = Caches()
    call = watch(forward, *inputs, **options)
    y, cache = call.result
    caches.learn(call)
    call_backward = watch(backward, dy, cache)
    caches.learn(call_backward)
    named_inputs = dict(zip(names_of(forward, len(inputs)), inputs, strict=True))
    code = in_pytorch.block(name, named_inputs, options, dy)
    in_pytorch.check(code, named_inputs, y, gradients_of(name, dy, cache))
    forward_formula, *forward_words = paragraphs(inspect.getdoc(forward) or "")
    backward_formula, *backward_words = paragraphs(inspect.getdoc(backward) or "")
    formulas = "".join(
        f"<p><b>{title}</b> {formula}</p>"
        for title, formula in (("Forward", forward_formula), ("Backward", backward_formula))
    )
    sections = [
        f"# `{name}`, line by line",
        _raw(f"<div class='formulas formula-text'>{formulas}</div>"),
        _see_also(name),
        READING,
        "## Forward",
        _raw(*forward_words),
        _raw(_example_values("The example", named_inputs | options, caches), lines(call, caches)),
        "## Backward",
        _raw(*backward_words),
        _raw(
            _example_values("The gradient that comes in", _first_argument(call_backward), caches),
            lines(call_backward, caches),
        ),
        "## The same in PyTorch\n\nAutograd gives the same gradients, to rounding in float64. The "
        f"block runs as it stands.\n\n```python\n{code}\n```",
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _raw(*html: str) -> str:
    lines_of_html = "\n".join(html)
    return f"```{{raw}} html\n{lines_of_html}\n```" if html else ""


def _example_values(title: str, values: dict[str, Any], caches: Caches) -> str:
    """Return the HTML of an example's values, by name."""
    texts = [
        text
        for name, value in values.items()
        for text in [*numbers(name, value, caches)] or [f"{name} = {type(value).__name__}"]
    ]
    blocks = "".join(map(numbers_block, texts))
    return f"<div class='example'><p>{title}</p><div class='values'>{blocks}</div></div>"


def _first_argument(call: Call) -> dict[str, Any]:
    """Return the gradient that a backward pass is given, by its name."""
    name = next(iter(call.arguments))
    return {name: call.arguments[name]}


def _see_also(name: str) -> str:
    """Return links to the chapters that quote a pair, to its entry in the reference and source."""
    module = inspect.unwrap(FUNCTIONS[name]).__module__
    file = f"npformer/{module.removeprefix('npformer.').replace('.', '/')}.py"
    links = [
        f"[the chapter on {chapter.replace('_', ' ')}](../chapters/{chapter}.md)"
        for chapter, names_quoted in chapters().items()
        if name in names_quoted
    ]
    links += [f"{{py:obj}}`the reference <{module}.{name}>`", f"[the source](../../{file})"]
    return f"See also {', '.join(links)}."


def names_of(function: Any, n: int) -> list[str]:
    """Return a name for each input: those of the parameters; more of the last are numbered."""
    names = [*inspect.signature(function).parameters][:n]
    return [*names, *(f"{names[-1]}_{i}" for i in range(1, n - len(names) + 1))]


@cache
def chapters() -> dict[str, list[str]]:
    """Return the pairs that each chapter quotes or has numbers for, in the order of the course."""
    pairs_by_chapter: dict[str, list[str]] = {}
    course = re.findall(r"^chapters/\w+$", (ROOT / "docs" / "index.md").read_text("utf-8"), re.M)
    for file in (ROOT / "docs" / f"{chapter}.md" for chapter in course):
        quoted_names = [pair for pair, (chapter, *_) in RUNNING.items() if chapter == file.stem]
        quoted_names += " ".join(SOURCE.findall(file.read_text("utf-8"))).split()
        names = [pair.removesuffix("_backward") for pair in quoted_names]
        if known := [pair for pair in dict.fromkeys(names) if pair in NAMES]:
            pairs_by_chapter[file.stem] = known
    return pairs_by_chapter


def write(app: Sphinx) -> None:
    """Write docs/line_by_line/: a page for each pair, and the first page."""
    folder = Path(app.srcdir) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.md").write_text(page(name), "utf-8")
    of = chapters()
    rows = [
        f"- [{chapter.replace('_', ' ')}](../chapters/{chapter}.md): "
        + ", ".join(f"[{name}]({name}.md)" for name in names)
        for chapter, names in of.items()
    ]
    rest = [name for name in NAMES if not any(name in names for names in of.values())]
    rows.append("- without a chapter: " + ", ".join(f"[{name}]({name}.md)" for name in rest))
    tree = "\n".join(NAMES)
    (folder / "index.md").write_text(
        "# Line by line\n\nEvery forward and backward pass in `npformer.functional`, with the "
        "value of each line on a small example.\n\n"
        + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n{tree}\n```\n",
        "utf-8",
    )


def lead_to_it(app: Sphinx, doctree: nodes.document) -> None:
    """Put links to the pages of its pairs below a chapter's title."""
    if names := chapters().get(chapter_of(app)):
        links = ", ".join(f'<a href="../{FOLDER}/{name}.html">{name}</a>' for name in names)
        below_title(doctree, f'<p class="notebook">Line by line: {links}</p>')


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", write)
    app.connect("doctree-read", lead_to_it)
    app.add_css_file("line_by_line.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
