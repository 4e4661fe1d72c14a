"""The tasks that the page offers, and the work that each begins."""

from __future__ import annotations

from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from npformer import data
from npformer.data.tables import is_fasttext_file, read_table
from npformer.learn.play.broken import HAVE_A_PLACE, described
from npformer.learn.play.settings import LIMITS, TASKS, Settings
from npformer.learn.play.task_works import ArrayWork, BookWork, PairsWork, TextsWork, Work
from npformer.mixers import MIXERS
from npformer.tasks.estimators.defaults import training
from npformer.tasks.sources.file_kinds import choose_column, is_text_file
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
    task = settings.task
    if settings.bug is not None and task not in ("digits", "parity", "pointer"):
        raise ValueError(
            f"bug is {settings.bug!r} and task {task!r}; expected the task digits, parity or "
            "pointer, whose model gets its layers one by one"
        )
    if task == "digits":
        return ArrayWork(settings, data.digits())
    if task in ("parity", "pointer"):
        return ArrayWork(settings, getattr(data, task)(settings.seed, train=8000))
    if task in ("reverse", "sort", "add"):
        return _pairs_work(settings)
    if task == "text":
        return _book_work(settings)
    if task == "file" and not settings.file:
        raise ValueError("file is empty; expected the path of a CSV on this machine")
    return _texts_work(settings)


def _pairs_work(settings: Settings) -> PairsWork:
    name = "reversal" if settings.task == "reverse" else settings.task
    pairs = Part(*data.pairs(name, N_PAIRS, settings.seed))
    task = FileTask(kind="pairs", file=name, test="0", validation=HELD_OUT, seed=settings.seed)
    samples_by_name, _ = task.parts(pairs)
    return PairsWork(settings, samples_by_name)


def _book_work(settings: Settings) -> BookWork:
    file = _file(settings)
    task = FileTask(kind="text", file=file, test="0", validation=HELD_OUT, seed=settings.seed)
    beginning = task.read(file).samples[:CHARACTERS]
    samples_by_name, _ = task.parts(Part(beginning))
    return BookWork(settings, samples_by_name)


def _texts_work(settings: Settings) -> TextsWork:
    task = FileTask(
        kind="texts",
        file=_file(settings),
        test="0",
        validation=HELD_OUT,
        seed=settings.seed,
        text=settings.text_column or "text",
        label=settings.label_column or "label",
        skip_empty=True,
    )
    sentences = None if settings.task == "file" else Part(*data.sentences(seed=0).train)
    try:
        samples_by_name, _ = task.parts(sentences)
    except ValueError as error:  # a page has menus in place of options
        menu = "Choose another column of the label"
        raise ValueError(str(error).replace("--label COLUMN names another column", menu)) from error
    return TextsWork(settings, samples_by_name)


def _file(settings: Settings) -> str:
    """Return the absolute path of the run's file, by default of the packaged text."""
    packaged = resources.files("npformer.data") / "shakespeare.txt.gz"
    return str(Path(settings.file or str(packaged)).absolute())  # "-" is not standard input here


def choices(file: str | None = None) -> dict[str, Any]:
    """Return what a page can choose from: tasks, mixers and bugs, and what it begins with.

    "first" is the task of a file that the page is opened with, and "columns" are those of a table.
    """
    first: str | None = None
    columns: list[str] = []
    guessed: dict[str, Any] = {}
    if file is not None:
        is_one_text = is_text_file(file) and not is_fasttext_file(Path(file))
        first = "text" if is_one_text else "file"
        if first == "file":
            columns, guessed = _columns_of(file)
        guessed["file"] = file
    tasks = [
        {**task, "defaults": defaults(name, **(guessed if name == first else {})).to_dict()}
        for name, task in TASKS.items()
    ]
    mixers = [
        {"name": name, "about": (kind.__doc__ or "").strip().partition("\n")[0]}
        for name, kind in MIXERS.items()
    ]
    bugs = [
        {**described(name), "task": "digits", "settings": settings}
        for name, settings in HAVE_A_PLACE.items()
    ]
    return {
        "first": first,
        "file": file,
        "columns": columns,
        "tasks": tasks,
        "mixers": mixers,
        "bugs": bugs,
        "limits": LIMITS,
    }


def _columns_of(file: str) -> tuple[list[str], dict[str, Any]]:
    """Return a table's columns, and those that hold texts and labels, as far as one can tell.

    With them come the epochs and the batch size that `npformer train` has for so many texts.
    Without the usual names these are the column with most to read that does not repeat, and that of
    the fewest different values, two at least: without one the label's is "". A file that is no
    table has none: starting a run says why.
    """
    try:
        table = read_table(file, fill_short_rows=True)
    except (OSError, ValueError):
        return [], {}
    texts = {name: table.texts(name, missing="") for name in table.columns}
    n_values = {name: len({*column} - {""}) for name, column in texts.items()}
    guesses = {"text": max(texts, key=lambda name: sum(map(len, {*texts[name]})))}
    for role in ("text", "label"):
        with suppress(ValueError):
            guesses[role] = choose_column(table, None, role)
    if n_values.get(guesses.get("label", ""), 0) < 2:
        candidates = [n for n in texts if n != guesses["text"] and n_values[n] > 1]
        guesses["label"] = min(candidates, key=n_values.__getitem__, default="")
    different = n_values[guesses["text"]]
    text_settings = training("text", max(round((1.0 - float(HELD_OUT)) * different), 1))
    shared = {name: text_settings[name] for name in ("epochs", "batch_size")}
    return [*texts], {f"{role}_column": name for role, name in guesses.items()} | shared
