"""A page for each pair of functions, made from its source when the site is built.

Each line that ran stands beside its comment and the numbers that it made. They are caught while the
pair runs, so they cannot drift from the code. Below stands PyTorch's form, as the parity tests have
it; where PyTorch is installed, the two are compared here too.
"""

import ast
import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx

from docs.site import in_pytorch
from docs.site.below_title import below_title, chapter_of
from docs.site.running_examples import RUNNING, running_example
from tests.pairs import FUNCTIONS, NAMES, Example, gradients_of, pairs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "line_by_line"
SOURCE = re.compile(r"<!-- source: npformer/functional/\S+ ([^>]+?) -->")
SMALL = Example(batch=1, length=2, keys=2, n_heads=1, others=3, d_head=3)
ALIKE = {
    r"(\w+ = )?checks\.gradient": "The gradient has the shape of the result.",
    r"(\w+ = )?(checks\.|_?check_)": "An error names what does not fit.",
    r"raise ": "The error says what came, and what to do.",
    r"\w+ = array_module": "NumPy, or CuPy for arrays on a GPU.",
    r".* = cache$": "What the forward pass kept.",
    r"return .*, \(.*\)$": "The result, and what the backward pass needs.",
}
"""Beginnings of lines that are alike in all pairs, and what is said of them where no comment is."""


def example(name: str) -> tuple[list[Any], dict[str, Any], Any]:
    """Return inputs, options and dy for a pair."""
    if name in RUNNING:
        return running_example(name)
    inputs, options = pairs(SMALL, "float64")[name]
    inputs = [np.round(x, 2) if x.dtype.kind == "f" else x for x in inputs]
    again = pairs(SMALL, "float64")[name]  # a generator of dropout has drawn by then
    y, _ = FUNCTIONS[name](*inputs, **again[1])
    return inputs, options, np.round(np.random.default_rng(1).normal(size=np.shape(y)), 1)


def traced(function: Any, *inputs: Any, **options: Any) -> tuple[Any, dict[int, dict[str, Any]]]:
    """Call a function; return its result, and for each line that ran what it made, by name."""
    code, values_by_line, line = inspect.unwrap(function).__code__, {}, [0]
    before: dict[str, Any] = {}

    def note(frame: Any) -> None:
        now = {name: _kept(value) for name, value in frame.f_locals.items()}
        if line[0]:
            new = {n: v for n, v in now.items() if n not in before or not _same(v, before[n])}
            values_by_line.setdefault(line[0], {}).update(new)
        before.clear()
        before.update(now)

    def local(frame: Any, event: str, argument: Any) -> Any:
        note(frame)
        line[0] = frame.f_lineno
        if event == "return":
            values_by_line.setdefault(line[0], {})["returned"] = _kept(argument)
        return local

    def watch(frame: Any, event: str, argument: Any) -> Any:
        return local if frame.f_code is code else None

    sys.settrace(watch)
    try:
        result = function(*inputs, **options)
    finally:
        sys.settrace(None)
    return result, values_by_line


def _kept(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    return a is b


def statements(function: Any) -> Iterator[tuple[int, int, str, str]]:
    """Yield (first line, last line, comments, code) of the statements of a function."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    body = ast.parse(textwrap.dedent("".join(lines))).body[0]
    assert isinstance(body, ast.FunctionDef)
    begin = body.body[1:] if ast.get_docstring(body) else body.body
    ends = {}
    for statement in _leaves(begin):
        last = statement.body[0].lineno - 1 if hasattr(statement, "body") else statement.end_lineno
        while lines[last - 1].strip()[:1] in ("", "#"):  # comments above the first line within
            last -= 1
        ends[statement.lineno] = last
    k, above = begin[0].lineno, ""
    while k <= len(lines):
        last = ends.get(k, k)
        source = "".join(lines[k - 1 : last])
        before, beside = (
            " ".join(re.findall(rf"{where}#\s(.*)$", source, re.MULTILINE))
            for where in (r"^\s*", r"\S\s\s")
        )
        code = re.sub(r"(^\s*|\s\s)#\s.*$", "", source, flags=re.MULTILINE).rstrip()
        above = f"{above} {before}".strip()
        if code.strip():  # else it is a comment of the line below
            comments = f"{above}\n{beside}".strip()
            yield first + k - 1, first + last - 1, comments, re.sub("^ {4}", "", code, flags=re.M)
            above = ""
        k = last + 1


def _leaves(body: list[ast.stmt]) -> Iterator[Any]:
    for statement in body:
        yield statement
        for block in ("body", "orelse"):
            yield from _leaves(getattr(statement, block, []))


def said_of(code: str) -> str:
    """Return what is said of a line that is alike in all pairs."""
    return next((words for line, words in ALIKE.items() if re.match(line, code.strip())), "")


def numbers(name: str, value: Any) -> Iterator[str]:
    """Yield a name with the shape and the numbers of its array, or of those in its tuple."""
    if isinstance(value, tuple):
        for i, entry in enumerate(value):
            yield from numbers(f"{name}[{i}]", entry)
    elif isinstance(value, np.ndarray | np.floating | float):
        shape = f" {value.shape}" if np.ndim(value) else ""
        text = np.array2string(np.asarray(value), precision=4, suppress_small=True, threshold=40)
        yield f"{name}{shape}\n{text}"


def section(function: Any, values_by_line: dict[int, dict[str, Any]]) -> str:
    """Return the HTML of a function's lines."""
    rows: list[str] = []
    for first, last, comments, code in statements(function):
        lines_that_ran = [k for k in values_by_line if first <= k <= last]
        texts = [
            text
            for k in lines_that_ran
            for n, v in values_by_line[k].items()
            for text in numbers(n, v)
        ]
        if re.search(r"\bempty(_like)?\(", code):  # what is there is left from before
            texts = [f"{text.partition(chr(10))[0]}, filled below" for text in texts]
        shown = "".join(f"<pre class='numbers'>{escape(text)}</pre>" for text in texts)
        ran = "" if lines_that_ran else " not-run"
        sentences = (comments or said_of(code)).splitlines()
        words = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
        rows.append(
            f"<div class='line{ran}'><div class='words'>{words}</div>"
            f"<div><pre class='code'>{escape(code)}</pre>"
            f"{shown}</div></div>"
        )
    return f"<div class='line-by-line'>{''.join(rows)}</div>"


def page(name: str) -> str:
    """Return the page of a pair."""
    forward, backward = FUNCTIONS[name], FUNCTIONS[f"{name}_backward"]
    inputs, options, dy = example(name)
    (y, cache), values_forward = traced(forward, *inputs, **options)
    _, values_backward = traced(backward, dy, cache)
    named_inputs = dict(zip(names_of(forward, len(inputs)), inputs, strict=True))
    code = in_pytorch.block(name, named_inputs, options, dy)
    in_pytorch.check(code, named_inputs, y, gradients_of(name, dy, cache))
    example_values = named_inputs | options | {names_of(backward, 1)[0]: dy}
    begin = "\n\n".join(
        text for n, v in example_values.items() for text in [*numbers(n, v)] or [f"{n} = {v}"]
    )
    sections = [
        f"# `{name}`, line by line",
        f"**Inputs** (lines that they do not reach are grey)\n\n```text\n{begin}\n```",
    ]
    for title, function, lines in (
        ("Forward", forward, values_forward),
        ("Backward", backward, values_backward),
    ):
        words = (inspect.getdoc(function) or "").partition("\nParameters\n")[0].strip()
        html = section(function, lines)
        sections.append(f"## {title}\n\n```text\n{words}\n```\n\n```{{raw}} html\n{html}\n```")
    sections.append(
        "## The same in PyTorch\n\nAutograd gives the same gradients, to rounding in float64. The "
        f"block runs as it stands.\n\n```python\n{code}\n```"
    )
    module = inspect.unwrap(forward).__module__
    file = f"npformer/{module.removeprefix('npformer.').replace('.', '/')}.py"
    links = [f"[the source](../../{file})", f"{{py:obj}}`the reference <{module}.{name}>`"]
    links += [
        f"[the chapter on {chapter.replace('_', ' ')}](../chapters/{chapter}.md)"
        for chapter, quoted in reversed(chapters().items())
        if name in quoted
    ]
    sections.insert(1, f"See also {', '.join(reversed(links))}.")
    return "\n\n".join(sections) + "\n"


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
        "# Line by line\n\nEach pair of functions, with the numbers that its lines make of a small "
        "example.\n\n" + "\n".join(rows) + f"\n\n```{{toctree}}\n:hidden:\n{tree}\n```\n",
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
