"""A run as a page that needs no server: while it trains, or from its folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from npformer.learn.play.export import N_SAMPLES, describe_accuracy, page_of_model, write_page
from npformer.learn.play.folder import SETTINGS, Folder, settings_of
from npformer.learn.play.state import Now, groups_of
from npformer.learn.play.trained import INK, trained
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.storage.checkpoint_folder import CHECKPOINT, read
from npformer.training.storage.model_file import CheckpointError

LEFT_OUT = ("file", "text_column", "label_column", "bug")
"""Settings with places on this machine, or that are shown elsewhere."""


def export(now: Now, points: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return {"html": the page}, with the weights as they are."""
    work, state, settings = now.work, now.training, now.work.settings.to_dict()
    run = {
        "settings": {k: v for k, v in settings.items() if k not in LEFT_OUT},
        "kind_of_input": work.kind,
        "bug": now.work.settings.bug,
        "layers": [name for name, _ in groups_of(state.model)],
        "alone": work.alone,
    }
    facts = {"step": f"{state.step} of {state.n_steps * state.epochs}"}
    measured = [p["accuracy"] for p in points if p["accuracy"] is not None]
    if measured:
        facts["accuracy"] = describe_accuracy(measured[-1], work.alone)
    rows = slice(0, N_SAMPLES)
    shown: dict[str, Any] = {"data": work.shown(rows), "texts": work.texts(rows)}
    shown |= {"ink": INK, "facts": facts}
    return {"html": page_of_model(now.plain, run=run, points=points, names=work.names, **shown)}


def export_folder(
    folder: str | os.PathLike[str], path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the page of what `npformer train` or `npformer play` left in a folder.

    With `overwrite`, an existing file is replaced.
    """
    return write_page(path, partial(page_of_folder, folder), overwrite=overwrite)


def page_of_folder(folder: str | os.PathLike[str]) -> str:
    """Return the page of what `npformer train` or `npformer play` left in a folder."""
    folder = Path(folder)
    if (folder / SETTINGS).is_file():
        return page_of_run(folder)
    if names := [*Folder(folder).shown()]:  # of a page: the first that it shows
        return page_of_run(folder / names[0])
    model, what = trained(folder)
    return page_of_model(model, **what)


def page_of_run(place: Path) -> str:
    """Return the page of a run in its folder, which is not changed: its checkpoint is copied."""
    from npformer.learn.play.tasks import work_of  # when needed: it imports all tasks

    folder = Folder(place.parent)
    work = work_of(settings_of(place))
    html = ""

    class Look(Callback):
        """Writes the page of the training as it is before its next step, and ends it."""

        def on_start(self, state: TrainingState) -> None:
            nonlocal html
            points = [p for p in folder.points(place.name) if p["step"] <= state.step]
            html = export(Now(work, state), points)["html"]
            state.stop("looked at")

    with TemporaryDirectory() as copy:
        if read(place) is not None:  # one that can be used, and no endless file
            shutil.copy(place / CHECKPOINT, copy)
        try:
            work.train(callbacks=[Look()], checkpoint=copy, resume=True, progress=False, workers=1)
        except CheckpointError as error:
            raise CheckpointError(str(error).replace(copy, str(place))) from error
    return html
