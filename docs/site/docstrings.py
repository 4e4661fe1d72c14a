"""How the reference reads docstrings, which are written for readers of the code.

Formulas keep their lines, paths of pages become links, and a link leads to what is meant: a
capitalised name to the thing of that name, a word such as "length" in a type nowhere.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

from docs.site import leads
from docs.site.search import PACKAGES, PUBLIC
from npformer.core import Registry

LONGEST_VALUE = 60
SEVERAL = re.compile(r"^\s*\w+(?:, \w+)+ : ")
JOINT = "\N{INVISIBLE SEPARATOR}"
"""Between names that share a description, until Sphinx has read them."""
PAGE = re.compile(r"(?<![\w/`])docs/([\w/]+)\.md")
EXPORTED = {name for package in PACKAGES for name in package.__all__}


def keep_formulas(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Make indented text below a paragraph a literal block, so that a formula keeps its lines."""
    for k in range(len(lines) - 3, -1, -1):
        line, between, following = lines[k : k + 3]
        indent = len(line) - len(line.lstrip())
        if not line.strip() or between.strip() or not following.startswith(" " * (indent + 4)):
            continue
        if line.endswith("::"):
            continue
        if line.endswith(":"):
            lines[k] += ":"
        else:
            lines[k + 1 : k + 1] = ["", " " * indent + "::"]


def spell_out(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Mark what Sphinx would take for something else.

    Of several names in a line, it would repeat the description for each or take the last as the
    name and the others as the type; what stands before a colon in a constant's first line, as its
    type; and the underscore of classes_ as a link. The path of a page becomes one.
    """
    for k, line in enumerate(lines):
        if SEVERAL.match(line):
            names, colon, kind = line.partition(" : ")
            lines[k] = line = f"{names.replace(', ', JOINT)}{colon}{kind}"
        else:
            line = re.sub(r"^(\s*\w+)_ : ", r"\1\_ : ", line)
        lines[k] = PAGE.sub(lambda path: leads.link_to(path[1]), line)
    if what in ("attribute", "property", "data") and lines:
        lines[0] = re.sub(r": ", " \N{EN DASH} ", lines[0])


def hide_catcher(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, result: str
) -> tuple[str, str] | None:
    """Show a parameter that only catches what was not named as what it means: a bare star."""
    return (signature.replace("*misplaced", "*"), result) if signature else None


def is_internal(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out constants that no package exports, but for tables, and fields that only count."""
    if str(obj.__doc__).startswith("Alias for field number"):  # of a named tuple
        return True
    if what == "module" and name.isupper() and not isinstance(obj, Registry):
        return name not in EXPORTED or None
    return None


def drop_long_value(app: Sphinx, domain: str, kind: str, content: nodes.Element) -> None:
    """Show a constant's value only if it fits on a line; a table of builders says nothing here."""
    for signature in content.parent.findall(addnodes.desc_signature):
        for note in list(signature.findall(addnodes.desc_annotation)):
            if note.astext().startswith(" = ") and len(note.astext()) > LONGEST_VALUE:
                signature.remove(note)


def mean_words(app: Sphinx, doctree: nodes.document) -> None:
    """Make words of a type, which Sphinx would lead to any attribute of that name, plain text."""
    if not app.env.docname.startswith("reference/"):
        return
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.get("reftype") == "class" and re.fullmatch(r"[a-z]\w*", link["reftarget"]):
            shown = next(link.findall(addnodes.pending_xref_condition), link)
            link.replace_self(shown.children)
    for text in list(doctree.findall(nodes.Text)):
        if JOINT in text:
            text.parent.replace(text, nodes.Text(text.replace(JOINT, ", ")))
        elif text == " -- ":  # Sphinx's, which could break within
            text.parent.replace(text, nodes.Text("\N{NO-BREAK SPACE}\N{EN DASH} "))


def lead_to_name(
    app: Sphinx, env: Any, link: addnodes.pending_xref, content: nodes.Element
) -> nodes.reference | None:
    """Lead from a capitalised name to the one thing that is called so, or to its class."""
    target = link["reftarget"]
    if link.get("refdomain") != "py" or not target[:1].isupper():
        return None
    known = env.domains.python_domain.objects
    for name in (target, target.rpartition(".")[0] or target):
        found = [place for place in known if place.endswith(f".{name}")]
        if found := [place for place in found if place in PUBLIC] or found:
            break
    if len(found) != 1:
        return None
    there = known[found[0]]
    return make_refnode(
        app.builder, link["refdoc"], there.docname, there.node_id, content, found[0]
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Read docstrings before napoleon does, and their links before Sphinx follows them."""
    app.connect("autodoc-process-docstring", keep_formulas, priority=100)
    app.connect("autodoc-process-docstring", spell_out, priority=100)
    app.connect("autodoc-process-docstring", leads.lead_on, priority=900)  # after napoleon
    app.connect("autodoc-process-signature", hide_catcher)
    app.connect("autodoc-skip-member", is_internal)
    app.connect("object-description-transform", drop_long_value)
    app.connect("doctree-read", mean_words)
    app.connect("missing-reference", lead_to_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
