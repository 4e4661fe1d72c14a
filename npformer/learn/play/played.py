"""A run that `npformer play` left in a folder, as a page without a server."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from npformer.learn.play.folder import SETTINGS, Folder
from npformer.learn.play.questions.export import export
from npformer.learn.play.state import Now
from npformer.learn.play.tasks import work_of
from npformer.learn.play.works import Work
from npformer.training.callbacks import Callback, TrainingState


class Look(Callback):
    """Keeps the page of a training as it is before its next step, and ends it."""

    def __init__(self, work: Work, points: list[dict[str, Any]]) -> None:
        self.work, self.points = work, points
        self.html = ""

    def on_start(self, state: TrainingState) -> None:
        """Write the page."""
        self.html = export(Now(self.work, state), self.points)["html"]
        state.stop("looked at")


def run_in(folder: Path) -> Path | None:
    """Return the folder of a run: the one that is given, or the first in the folder of a page."""
    if (folder / SETTINGS).is_file():
        return folder
    names = sorted(Folder(folder).runs())
    return folder / names[0] if names else None


def page_of_run(place: Path) -> str:
    """Return the page of a run in its folder, which is not changed: a copy of it is read."""
    folder = Folder(place.parent)
    work = work_of(folder.runs()[place.name])
    look = Look(work, folder.points(place.name))
    with TemporaryDirectory() as copy:
        shutil.copytree(place, copy, dirs_exist_ok=True)
        work.train(callbacks=[look], checkpoint=copy, resume=True, progress=False, workers=1)
    return look.html
