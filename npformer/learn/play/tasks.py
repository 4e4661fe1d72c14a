"""The tasks that the page offers, and the work that each begins."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from npformer import data
from npformer.learn.museum import BUGS
from npformer.learn.play.broken import HAVE_A_PLACE, described
from npformer.learn.play.settings import LIMITS, TASKS, Settings
from npformer.learn.play.works import ArrayWork, BookWork, PairsWork, TextsWork, Work
from npformer.mixers import MIXERS
from npformer.tasks.sources.file_task import FileTask, Part

HELD_OUT = "0.1"
"""Share of the data to validate on."""

CHARACTERS = 300_000
"""Most characters of a text: an epoch should be short enough to wait for."""

N_PAIRS = 20_000


def defaults(name: str, **given: Any) -> Settings:
    """Return the usual settings of a task."""
    return Settings.of({"task": name, **TASKS[name]["defaults"], **given})


def work_of(settings: Settings) -> Work:
    """Return the work of some settings, with its data."""
    task, seed = settings.task, settings.seed
    if settings.bug is not None and task not in ("digits", "parity", "pointer"):
        raise ValueError(
            f"bug is {settings.bug!r} and task {task!r}; expected the task digits, parity or "
            "pointer, whose model gets its layers one by one"
        )
    if task == "digits":
        return ArrayWork(settings, data.digits())
    if task in ("parity", "pointer"):
        return ArrayWork(settings, getattr(data, task)(seed, train=8000))
    if task == "text":
        given = settings.file or str(resources.files("npformer.data") / "shakespeare.txt.gz")
        place = str(Path(given).absolute())  # "-" is not standard input, which has one reader
        book = FileTask(kind="text", file=place, test="0", validation=HELD_OUT)
        whole = Part(book.read(place).samples[:CHARACTERS])
        return BookWork(settings, book.parts(whole)[0])
    if task in ("sentences", "file"):
        return TextsWork(settings, _texts(settings))
    name = "reversal" if task == "reverse" else task
    sources, targets = data.pairs(name, N_PAIRS, seed)
    cut = round(N_PAIRS * (1.0 - float(HELD_OUT)))
    train, validation = (
        Part(sources[rows], targets[rows]) for rows in (slice(cut), slice(cut, None))
    )
    return PairsWork(settings, {"train": train, "validation": validation})


def _texts(settings: Settings) -> dict[str, Part]:
    """Return texts with labels, of the package or of a file, in parts."""
    whole = None if settings.task == "file" else Part(*data.sentences(seed=0).train)
    if whole is None and not settings.file:
        raise ValueError("file is empty; expected the path of a CSV on this machine")
    texts = FileTask(
        kind="texts",
        file=str(Path(settings.file or "").absolute()),  # likewise
        text=settings.text_column or "text",
        label=settings.label_column or "label",
        test="0",
        validation=HELD_OUT,
        seed=settings.seed,
        keep_repeated=True,
        skip_empty=True,
    )
    return texts.parts(whole)[0]


def choices(file: str | None = None) -> dict[str, Any]:
    """Return what a page can choose from: tasks, mixers and bugs."""
    tasks = []
    for name, task in TASKS.items():
        usual = defaults(name, file=file if name in ("file", "text") else None)
        tasks.append({**task, "defaults": usual.to_dict()})
    mixers = [
        {"name": name, "about": (kind.__doc__ or "").strip().partition("\n")[0]}
        for name, kind in MIXERS.items()
    ]
    bugs = [
        {**described(name), "task": "digits", "settings": HAVE_A_PLACE[name]}
        for name in BUGS
        if name in HAVE_A_PLACE
    ]
    return {"tasks": tasks, "mixers": mixers, "bugs": bugs, "limits": LIMITS}
