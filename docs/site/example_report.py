"""A report for the site: ``python -m docs.site.example_report FILE`` writes it.

A link from a page to this file leads to the report on the site, and to this code on a public host.
"""

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import npformer as nf
from docs.site.written_page import written_page
from npformer.tasks.sources.recipes import RECIPES

PLACE = "_files/report.html"
"""Where the report is on the site."""


def build(path: str | Path, *, overwrite: bool = True) -> Path:
    """Train two models on digits for a few seconds, and write a report on them."""
    recipe = RECIPES["digits"]
    dataset = recipe.load("stratified", 0)
    models = {}
    for mixer in ("attention", "fourier"):
        models[mixer] = recipe.model(dataset, seed=0, mixer=mixer)
        nf.fit(models[mixer], dataset.train, epochs=8, lr=2e-3, seed=0, workers=1, progress=False)
    title = "Two mixers on digits: a look inside"
    return nf.report(
        models, *dataset.test, path=path, samples=[0, 1, 2], title=title, overwrite=overwrite
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the report, and link to it."""
    return written_page(app, Path(__file__), PLACE, build)


if __name__ == "__main__":
    print(build(sys.argv[1] if sys.argv[1:] else "report.html", overwrite=False))
