"""Pages that a script in this folder writes when the site has been built.

A link from a page to the script leads to what it wrote on the site, and to its code on a public
host.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from docs.site.links import WRITTEN


def written_page(
    app: Sphinx, script: Path, place: str, build: Callable[[str | Path], Path]
) -> dict[str, Any]:
    """Let `build` write a file to a place on the site, and point links to `script` there."""

    def write_it(app: Sphinx, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            path = Path(app.outdir) / place
            path.parent.mkdir(parents=True, exist_ok=True)
            build(path)

    WRITTEN[script.resolve()] = place
    app.connect("build-finished", write_it)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
