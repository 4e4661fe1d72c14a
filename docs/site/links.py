"""Links in the Markdown that leave docs/: to the source of the package, the README, results.

On a public host they lead to files of the repository. On the site a file of the package leads to
its source page, an example to its page in the gallery, and every other file to a copy of it.
MyST reports links to files that do not exist.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WRITTEN = {
    DOCS / "site" / f"{name}.py": f"{name}/index.html" for name in ("reference", "line_by_line")
}
"""Pages that the site has instead of a file that writes them; `written_page` adds others."""
OUTSIDE = re.compile(r"^[a-z]+:|^#|^$")


def lead_on(app: Sphinx, doctree: nodes.document) -> None:
    """Point each link to a file outside docs/ to its place on the site; MyST does the others."""
    here = app.env.docname
    for link in list(doctree.findall(_is_link)):
        target = link.get("refuri") or link["reftarget"]
        path, _, anchor = target.partition("#")
        if OUTSIDE.match(target):
            continue
        file = ((DOCS / here).parent / path).resolve()
        if link.get("refdomain") == "doc":
            endings = [file.with_name(file.name + ending) for ending in (".md", ".rst")]
            file = next((each for each in endings if each.exists()), file)  # MyST removed it
        if not file.exists() or (file.is_relative_to(DOCS) and file not in WRITTEN):
            continue
        place = WRITTEN.get(file) or _place(app, file)
        if place is None:
            link.replace_self(link.children)
            continue
        uri = relative_uri(app.builder.get_target_uri(here), place)
        link.replace_self(
            nodes.reference("", "", *link.children, refuri=f"{uri}#{anchor}" if anchor else uri)
        )


def _is_link(node: nodes.Node) -> bool:
    if isinstance(node, addnodes.pending_xref | addnodes.download_reference):
        return True  # the second is a reference, too, without an address yet
    return isinstance(node, nodes.reference) and bool(node.get("refuri"))


def _place(app: Sphinx, file: Path) -> str | None:
    """Return where a file is on the site; None for a folder, which the site does not have."""
    name = file.relative_to(ROOT)
    if file.is_dir():
        return None
    if name.parts[0] == "npformer" and file.suffix == ".py":
        module = name.with_suffix("").as_posix().removesuffix("/__init__")
        return f"_modules/{module}.html"
    if name.parts[0] == "examples":
        return f"gallery/{file.stem if file.suffix == '.py' else 'index'}.html"
    copy = Path(app.outdir) / "_files" / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)
    return f"_files/{name.as_posix()}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle the links of every page that is read."""
    app.connect("doctree-read", lead_on)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
