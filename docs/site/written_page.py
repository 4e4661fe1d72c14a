"""Pages that a script in this folder writes when the site has been built.

A link from a page to the script leads to what it wrote on the site, and to its code on a public
host.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri


def written_page(
    app: Sphinx, script: Path, place: str, build: Callable[[str | Path], Path]
) -> dict[str, Any]:
    """Let `build` write a file to a place on the site, and point links to `script` there."""

    def lead_to_it(app: Sphinx, doctree: nodes.document) -> None:
        here = app.env.docname
        for link in list(doctree.findall(addnodes.download_reference)):
            target = (Path(app.srcdir) / here).parent / link["reftarget"]
            if target.resolve() == script.resolve():
                uri = relative_uri(app.builder.get_target_uri(here), place)
                link.replace_self(nodes.reference("", "", *link.children, refuri=uri))

    def write_it(app: Sphinx, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            path = Path(app.outdir) / place
            path.parent.mkdir(parents=True, exist_ok=True)
            build(path)

    app.connect("doctree-read", lead_to_it)
    app.connect("build-finished", write_it)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
