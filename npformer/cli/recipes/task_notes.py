"""The task that a model was trained on, from the notes in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from npformer.cli.recipes.file_task import FileTask, Part, sum_of
from npformer.cli.recipes.labelled_tasks import SeriesTask, TextTask
from npformer.cli.recipes.writing_tasks import BookTask, PairsTask

KINDS: dict[str, type[FileTask]] = {
    each.kind: each for each in (TextTask, SeriesTask, BookTask, PairsTask)
}


def task_of_notes(values: dict[str, Any], *, check: bool = True) -> FileTask:
    """Return the task that `FileTask.to_dict` described; `check` that its files are unchanged."""
    given = dict(values)
    kind, sums = KINDS[given.pop("kind")], given.pop("sha256")
    for file, stated in sums.items() if check else ():
        if not Path(file).is_file():
            raise FileNotFoundError(
                f"{file}, on which the model was trained, is missing (looked in {Path.cwd()}); "
                "run this where it was trained, or name a file to measure it on"
            )
        if sum_of(Path(file)) != stated:
            raise ValueError(
                f"{file} has changed since the training, so its test part cannot be told apart "
                "from the training part. Name a file with other samples"
            )
    return kind(**given)


def trained_on(values: dict[str, Any]) -> Part | None:
    """Return what a task's model was trained on; None if its files are gone or have changed."""
    try:
        return task_of_notes(values).parts()[0]["train"]
    except (OSError, ValueError):
        return None
