"""Docstrings of formulas as HTML: indices, powers and Greek letters, and names as code."""

import re
from html import escape

from docutils import nodes

from docs.site.typeset import typeset

TAGS = {nodes.subscript: "sub", nodes.superscript: "sup"}


def without_parameters(docstring: str) -> str:
    """Return a docstring up to its sections: what is computed, and why."""
    return re.split(r"\n(?=\w[\w ]*\n-{3,})", docstring)[0].strip()


def paragraphs(docstring: str) -> list[str]:
    """Return what is computed, as HTML, and the paragraphs that derive it, each a `<p>`."""
    first, *more = re.split(r"\n[^\S\n]*\n+", without_parameters(docstring))
    html = [formula(first)]
    for text in more:
        is_display = text.startswith("    ")
        kind = " class='display formula-text'" if is_display else ""
        html.append(f"<p{kind}>{formula(text)}</p>")
    return html


def formula(paragraph: str) -> str:
    """Return a paragraph of a docstring as HTML."""
    texts = re.split(r"``?([^`]+)``?", " ".join(paragraph.split()))
    html = []
    for k, text in enumerate(texts):
        html.append(f"<code>{escape(text)}</code>" if k % 2 else _html(typeset(text)))
    return "".join(html)


def _html(fragments: list[nodes.Node]) -> str:
    html = []
    for node in fragments:
        tag = TAGS.get(type(node))
        html.append(f"<{tag}>{_html(node.children)}</{tag}>" if tag else escape(node.astext()))
    return "".join(html)
