"""Search that shows excerpts even when the site is opened from a file.

For the excerpt below a link, Sphinx fetches the page over the network, which browsers do not allow
on a page opened from a file. So a script of the search page holds the text of all pages, and takes
an excerpt that begins and ends with a word.

The words of the glossary lead to the pages that explain them, and ``nf.fit`` to where the reference
describes it: both are entries of Sphinx's index. The order of results is in scorer.js, and so is
what they are called.
"""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

import npformer

GLOSSARY = Path(__file__).resolve().parents[1] / "glossary.md"
ENTRY = re.compile(r"^\*\*(.+?)\.\*\* .+?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| ([^|]+) \| \[[^]]+\]\([^)]+\.md[^)]*\) \|$", re.MULTILINE)
LINK = re.compile(r"\]\(([a-z0-9_/]+)\.md(?:#([a-z0-9-]+))?\)")
PACKAGES = [
    npformer.data,
    npformer.functional,
    npformer.interop,
    npformer.layers,
    npformer.mixers,
    npformer.optim,
    npformer,
]
PUBLIC = {
    f"{thing.__module__}.{thing.__qualname__}": f"{package.__name__}.{name}"
    for package in PACKAGES
    for name in package.__all__
    if hasattr(thing := getattr(package, name), "__qualname__")
}
"""The name by which users call something, by where it is defined."""

SCRIPT = r"""const TEXTS = %s;
const NAMES = %s;
window.fetch = (page) => Promise.resolve(new Response(page.replace(/^\.\/|\.html$/g, "")));
document.addEventListener("DOMContentLoaded", () => {
  Search.makeSearchSummary = (page, words, anchor) => {
    const isOwn = ([id], k) => (anchor ? `#${id}` === anchor : k === 0 && EXPLAINING.has(page));
    const own = TEXTS[page].filter(isOwn);
    const text = (own.length ? own : TEXTS[page]).map(([, words]) => words).join(" ");
    const places = own.length ? [] : [...words].map((word) => text.toLowerCase().indexOf(word));
    const first = Math.min(...places.filter((place) => place >= 0), text.length);
    const start = first > 120 && first < text.length ? text.indexOf(" ", first - 120) + 1 : 0;
    const end = text.length > start + 240 ? text.lastIndexOf(" ", start + 240) : text.length;
    const summary = document.createElement("p");
    summary.className = "context";
    const part = text.slice(start, end);
    summary.textContent = (start ? "... " : "") + part + (end < text.length ? "\u00a0..." : "");
    return summary;
  };
});
"""


def words(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return (word, section) for each page to which entries and rows of the glossary lead."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for entry in (*ENTRY.finditer(text), *ROW.finditer(text)):
        page, section = LINK.findall(entry[0])[0]
        for word in re.sub(r" \(.*\)", "", entry[1]).split(", "):
            found[page] += [
                (each, section) for each in dict.fromkeys((word, word.replace("-", " ")))
            ]
    return found


def short_name(name: str) -> str:
    """Return a public name as users write it: nf.fit for npformer.fit."""
    return re.sub(r"^\w+", "nf", name)


def add_entries(app: Sphinx, doctree: nodes.document) -> None:
    """Put the words that a page explains into the index, and the public names that it describes."""
    places = [section["ids"] for section in doctree.findall(nodes.section)]
    known, entries = {name for ids in places for name in ids}, []
    for word, section in app.config.words_of_glossary.get(app.env.docname, []):
        entries.append((word, section if section in known else places[0][0]))
    for signature in doctree.findall(addnodes.desc_signature):
        for place in filter(PUBLIC.__contains__, dict.fromkeys(signature["ids"])):
            name = PUBLIC[place]
            entries += [(each, place) for each in dict.fromkeys((name, short_name(name)))]
    if entries:
        rows = [("single", word, place, "main", None) for word, place in entries]
        doctree.insert(0, addnodes.index(entries=rows))


def texts(doctree: nodes.document) -> list[tuple[str, str]]:
    """Return (id, text without code) for all sections of a page and entries of the reference."""
    parts: dict[str, list[str]] = {}
    for signature in doctree.findall(addnodes.desc_signature):
        parts.update({name: [] for name in signature["ids"]})
    for paragraph in doctree.findall(nodes.paragraph):
        place: nodes.Element | None = paragraph
        while place is not None and not isinstance(place, nodes.section | addnodes.desc):
            place = place.parent
        if place is None:
            continue
        words = [
            # only those formulas that can be read as text
            "\u2026" if isinstance(text.parent, nodes.math) and "\\" in text else text.astext()
            for text in paragraph.findall(nodes.Text)
            if text.parent.parent.get("condition") != "*"  # a link's other text
        ]
        if words[:1] == ["Bases: "]:  # of a class
            continue
        named = place if isinstance(place, nodes.section) else place[0]
        for name in named["ids"]:
            parts.setdefault(name, []).append(" ".join("".join(words).split()))
    return [(name, " ".join(filter(None, words))) for name, words in parts.items()]


def add_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let the results page read the texts."""
    if page == "search":
        app.add_js_file("excerpts.js")


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the texts of all pages."""
    if error is None and app.builder.format == "html":
        found = {page: texts(app.env.get_doctree(page)) for page in sorted(app.env.found_docs)}
        place = Path(app.outdir) / "_static" / "excerpts.js"
        names = {place: short_name(name) for place, name in PUBLIC.items()}
        names[npformer.losses.__name__] = "nf.losses"  # with all that it defines
        tables = tuple(json.dumps(table, ensure_ascii=False) for table in (found, names))
        place.write_text(SCRIPT % tables, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the script, and include it in the results page."""
    # A page is read again when its words change, not with every change of the glossary.
    found = words(GLOSSARY.read_text("utf-8"))
    app.add_config_value("words_of_glossary", dict(found), "env", dict)
    app.connect("doctree-read", add_entries)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
