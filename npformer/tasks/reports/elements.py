"""HTML as a tree of the standard library, which escapes all text and closes every tag."""

import importlib.resources
import re
import tomllib
from collections.abc import Iterable, Sequence
from html import escape
from string import Template
from typing import Any
from xml.etree.ElementTree import Element, tostring

Child = Element | str | None

FILES = importlib.resources.files("npformer.tasks.reports")

TEXTS: dict[str, dict[str, Any]] = tomllib.loads((FILES / "texts.toml").read_text("utf-8"))
"""What the sections of a report are called, and what they begin with."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Characters that no HTML file may contain."""


def e(tag: str, *children: Child | Iterable[Child], **attributes: str) -> Element:
    """Return an element with children: elements, texts, or lists of them; None is left out.

    An underscore at the end of an attribute's name is dropped: ``class_="wide"``.
    """
    element = Element(tag, {name.rstrip("_"): _clean(v) for name, v in attributes.items()})
    last: Element | None = None
    for child in _flat(children):
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif last is None:
            element.text = (element.text or "") + _clean(child)
        else:
            last.tail = (last.tail or "") + _clean(child)
    return element


def _flat(children: Iterable[Child | Iterable[Child]]) -> Iterable[Element | str]:
    for child in children:
        if isinstance(child, Element | str):
            yield child
        elif child is not None:
            yield from _flat(child)


def _clean(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)


def breakable(name: str, kind: str = "") -> Element:
    """Return a dotted name that may break after dots and underscores, followed by its kind."""
    syllables = re.findall(r"[^._]*[._]?", name.strip())
    indent = len(name) - len(name.lstrip())
    inner = [child for syllable in syllables if syllable for child in (syllable, e("wbr"))]
    suffix: list[Child] = [" ", e("small", kind)] if kind else []
    return e("span", inner[:-1], suffix, style=f"--indent: {indent // 2}")


def section(name: str, *children: Child | Iterable[Child], **values: Any) -> Element:
    """Return a part of the page: its heading, its text with these values in it, and the rest."""
    text = TEXTS[name].get("about", "").format(**values)
    heading = e("h2", TEXTS[name]["heading"])
    return e("section", heading, e("p", text) if text else None, *children, id=name)


def document(
    title: str, *body: Child | Iterable[Child], styles: Sequence[str] = ("report.css",)
) -> bytes:
    """Return a whole HTML file, with the styles of these files in it."""
    text = Template((FILES / "report.html").read_text("utf-8")).substitute(
        title=escape(_clean(title), quote=False),
        style="".join((FILES / name).read_text("utf-8") for name in styles),
        body=tostring(e("body", e("h1", title), *body), encoding="unicode", method="html"),
    )
    return text.encode("utf-8", "xmlcharrefreplace")  # half a surrogate pair has no UTF-8


def table(
    head: Sequence[Child], rows: Iterable[Sequence[Child]], caption: str = "", words: int = 1
) -> Element:
    """Return a table that scrolls sideways if too wide; the first `words` columns hold words."""

    def cells(tag: str, row: Sequence[Child]) -> Element:
        kinds = ["word"] * words + ["number"] * (len(row) - words)
        return e("tr", [e(tag, cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)])

    inner = e(
        "table", e("thead", cells("th", head)), e("tbody", [cells("td", row) for row in rows])
    )
    title = e("p", caption, class_="caption") if caption else None  # it does not scroll
    return e("div", title, e("div", inner, class_="scroll"))
