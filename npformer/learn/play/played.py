"""A run of the page as one that needs no server: while it trains, or from its folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from npformer.learn.play.export import N_SAMPLES, exported
from npformer.learn.play.folder import SETTINGS, Folder
from npformer.learn.play.state import Now, groups_of
from npformer.learn.play.trained import INK
from npformer.training.callbacks import Callback, TrainingState

LEFT_OUT = ("file", "text_column", "label_column", "bug")
"""Settings with places on this machine, or that are shown elsewhere."""


def export(now: Now, points: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return {"html": the page}, with the weights as they are."""
    work, state, settings = now.work, now.training, now.settings.to_dict()
    inputs, targets, masks = work.sample(slice(0, N_SAMPLES))
    if work.kind == "pair":
        inputs, masks = inputs[0], None  # the source; its padding has an id
    run = {
        "settings": {k: v for k, v in settings.items() if k not in LEFT_OUT},
        "kind_of_input": work.kind,
        "classes": work.classes,
        "bug": now.settings.bug,
        "layers": [name for name, _ in groups_of(now.model)],
    }
    facts = {"step": f"{state.step} of {state.n_steps * state.epochs}"}
    data: Any = inputs, targets, masks
    page = exported(
        now.plain, run=run, points=points, data=data, names=work.names, ink=INK, facts=facts
    )
    return {"html": page}


def run_in(folder: Path) -> Path | None:
    """Return the folder of a run: the one that is given, or the first in the folder of a page."""
    if (folder / SETTINGS).is_file():
        return folder
    names = sorted(Folder(folder).runs())
    return folder / names[0] if names else None


def page_of_run(place: Path) -> str:
    """Return the page of a run in its folder, which is not changed: a copy of it is read."""
    from npformer.learn.play.tasks import work_of  # when needed: it imports all tasks

    folder = Folder(place.parent)
    work = work_of(folder.runs()[place.name])
    html = ""

    class Look(Callback):
        """Writes the page of the training as it is before its next step, and ends it."""

        def on_start(self, state: TrainingState) -> None:
            nonlocal html
            html = export(Now(work, state), folder.points(place.name))["html"]
            state.stop("looked at")

    with TemporaryDirectory() as copy:
        shutil.copytree(place, copy, dirs_exist_ok=True)
        work.train(callbacks=[Look()], checkpoint=copy, resume=True, progress=False, workers=1)
    return html
