"""The tasks that the page offers, and the work that each begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from npformer import data
from npformer.data.pairs import PAIRS
from npformer.data.tables import read_table
from npformer.data.text_file import read_text
from npformer.learn.museum import BUGS
from npformer.learn.play.broken import HAVE_A_PLACE
from npformer.learn.play.settings import LIMITS, Settings
from npformer.learn.play.works import ArrayWork, BookWork, PairsWork, TextsWork, Work
from npformer.mixers import MIXERS

CHARACTERS = 300_000
"""Most characters of a text: an epoch should be short enough to wait for."""

N_PAIRS = 20_000


@dataclass(frozen=True)
class Task:
    """A task: what the page says about it, its usual settings, and how its work begins."""

    title: str
    about: str
    kind: str
    begin: Callable[[Settings], Work]
    usual: dict[str, Any] = field(default_factory=dict)


def _generated(make: Callable[..., Any]) -> Callable[[Settings], Work]:
    return lambda settings: ArrayWork(settings, make(settings.seed, train=8000))


def _book(settings: Settings) -> Work:
    place = resources.files("npformer.data").joinpath("shakespeare.txt.gz")
    text = read_text(settings.file) if settings.file else read_text(str(place))
    return BookWork(settings, text[:CHARACTERS])


def _pairs(name: str) -> Callable[[Settings], Work]:
    return lambda settings: PairsWork(settings, *data.pairs(name, N_PAIRS, settings.seed))


def _file(settings: Settings) -> Work:
    if not settings.file:
        raise ValueError("file is empty; expected the path of a CSV on this machine")
    table = read_table(settings.file)
    names = settings.text_column or "text", settings.label_column or "label"
    texts, labels = (table.texts(name, missing="") for name in names)
    pairs = [(t, label.strip()) for t, label in zip(texts, labels, strict=True) if t.strip()]
    full = [pair for pair in pairs if pair[1]]
    if (classes := len({label for _, label in full})) < 2:
        raise ValueError(
            f"{table.path} has {len(full)} texts with a label in {names[1]!r}, of {classes} "
            "classes; expected at least 2 classes"
        )
    return TextsWork(settings, [text for text, _ in full], [label for _, label in full])


TWO = ("attention", "attention")
TASKS: dict[str, Task] = {
    "digits": Task(
        "Handwritten digits",
        "1,797 pictures of 8 x 8 points. Each row of a picture is a token.",
        "image",
        lambda settings: ArrayWork(settings, data.digits()),
        {"mixers": TWO, "dropout": 0.2},
    ),
    "sentences": Task(
        "Sentences of reviews",
        "Is a sentence positive or negative? Each word is a token.",
        "ids",
        lambda settings: TextsWork(settings, *data.sentences(seed=0).train),
        {"dropout": 0.3, "epochs": 15},
    ),
    "parity": Task(
        "Parity",
        "Is the number of ones in twelve bits odd? Any eleven of them tell nothing.",
        "ids",
        _generated(data.parity),
        {"mixers": TWO, "dropout": 0.0, "batch_size": 64},
    ),
    "pointer": Task(
        "Pointer",
        "The last token names one of 16 places. Which symbol is there?",
        "ids",
        _generated(data.pointer),
        {"mixers": TWO, "dropout": 0.0, "batch_size": 64},
    ),
    "text": Task(
        "A text to continue",
        "A language model learns the next letter: of plays that come with the package, or of a "
        "text file of your own.",
        "text",
        _book,
        {"mixers": TWO, "epochs": 3, "d_ff": 256},
    ),
    **{
        name: Task(
            title,
            f"From one sequence to another: {PAIRS[key]}.",
            "pair",
            _pairs(key),
            {"epochs": 10, "batch_size": 64, "dropout": 0.0},
        )
        for name, title, key in (
            ("reverse", "Write backwards", "reversal"),
            ("sort", "Sort letters", "sort"),
            ("add", "Add two numbers", "add"),
        )
    },
    "file": Task(
        "A CSV of your own",
        "Texts and their labels: name the file, and the columns of both.",
        "ids",
        _file,
        {"dropout": 0.3, "text_column": "text", "label_column": "label"},
    ),
}


def defaults(name: str, **given: Any) -> Settings:
    """Return the usual settings of a task."""
    return Settings.of({"task": name, **TASKS[name].usual, **given})


def work_of(settings: Settings) -> Work:
    """Return the work of some settings, with its data."""
    if settings.bug is not None and settings.task not in ("digits", "parity", "pointer"):
        raise ValueError(
            f"bug is {settings.bug!r} and task {settings.task!r}; expected the task digits, "
            "parity or pointer, whose model gets its layers one by one"
        )
    return TASKS[settings.task].begin(settings)


def choices(file: str | None = None) -> dict[str, Any]:
    """Return what a page can choose from: tasks, mixers and bugs."""
    tasks = [
        {
            "name": name,
            "title": task.title,
            "about": task.about,
            "kind_of_input": task.kind,
            "defaults": defaults(name, file=file if name in ("file", "text") else None).to_dict(),
        }
        for name, task in TASKS.items()
    ]
    mixers = [
        {"name": name, "about": (kind.__doc__ or "").strip().partition("\n")[0]}
        for name, kind in MIXERS.items()
    ]
    bugs = [
        {
            "name": name,
            "title": bug.title,
            "why": bug.section("Why"),
            "cost": bug.section("Cost"),
            "code": bug.code,
            "task": "digits",
            "settings": dict(HAVE_A_PLACE[name]),
        }
        for name, bug in BUGS.items()
        if name in HAVE_A_PLACE
    ]
    return {"tasks": tasks, "mixers": mixers, "bugs": bugs, "limits": LIMITS}
