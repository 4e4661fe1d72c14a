"""A run of `npformer play` for the site: ``python -m docs.site.example_play FILE`` exports it.

A link from a page to this file leads to the exported page on the site, and to this code on a
public host.
"""

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from docs.site.written_page import written_page
from npformer.learn.play.played import export
from npformer.learn.play.remote import Remote
from npformer.learn.play.tasks import defaults, work_of

PLACE = "_files/play.html"
"""Where the page is on the site."""


class Kept:
    """Keeps a run's messages instead of sending them through a pipe; there are no questions."""

    def __init__(self) -> None:
        self.points: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        """Keep the points of the curves."""
        self.points += message.get("points", [])

    def poll(self, timeout: float | None = None) -> bool:
        """Return False: there is never a question."""
        return False


def build(path: str | Path, epochs: int = 12) -> Path:
    """Train on digits for a few seconds, and write the page of the run."""
    work, kept = work_of(defaults("digits", epochs=epochs)), Kept()
    watching = Remote(kept, work, paused=False)
    work.train(callbacks=[watching], progress=False, workers=1)
    path = Path(path)
    path.write_text(export(watching.now, kept.points)["html"], "utf-8")
    return path


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page, and link to it."""
    return written_page(app, Path(__file__), PLACE, build)


if __name__ == "__main__":
    print(build(sys.argv[1] if sys.argv[1:] else "play.html"))
