"""A report for the site: ``python -m docs.site.example_report FILE`` writes it.

A link of a page to this file leads to the report, on the site, and to this code on a public host.
"""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

import npformer as nf
from npformer.tools.recipes import RECIPES

HERE = Path(__file__).resolve()
PLACE = "_files/report.html"
"""Where the report stands on the site."""


def build(path: str | Path) -> Path:
    """Train two models on digits, for some seconds, and write a report on them."""
    recipe = RECIPES["digits"]
    dataset = recipe.load("stratified", 0)
    models = {}
    for mixer in ("attention", "fourier"):
        models[mixer] = recipe.model(dataset, seed=0, mixer=mixer)
        nf.fit(models[mixer], dataset.train, epochs=8, lr=2e-3, seed=0, workers=1, progress=False)
    title = "Two mixers on digits: a look inside"
    return nf.report(models, *dataset.test, path=path, samples=[0, 1, 2], title=title)


def lead_to_it(app: Sphinx, doctree: nodes.document) -> None:
    """Let links to this file lead to the report."""
    here = app.env.docname
    for link in list(doctree.findall(addnodes.download_reference)):
        target = (Path(app.srcdir) / here).parent / link["reftarget"]
        if target.resolve() == HERE:
            uri = relative_uri(app.builder.get_target_uri(here), PLACE)
            link.replace_self(nodes.reference("", "", *link.children, refuri=uri))


def write_it(app: Sphinx, error: Exception | None) -> None:
    """Write the report when the site has been built."""
    if error is None and app.builder.format == "html":
        path = Path(app.outdir) / PLACE
        path.parent.mkdir(parents=True, exist_ok=True)
        build(path)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the report, and lead to it."""
    app.connect("doctree-read", lead_to_it)
    app.connect("build-finished", write_it)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


if __name__ == "__main__":
    print(build(sys.argv[1] if sys.argv[1:] else "report.html"))
