"""What `npformer train` left: a model, what it was trained on, and samples to measure it on."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from npformer.cli.model_settings import options_typed
from npformer.cli.plugins import load_plugins
from npformer.core import a_type, checks
from npformer.data.series import is_series_file
from npformer.data.tables import is_fasttext_file, read_table
from npformer.data.text_file import display_name
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.estimators import Estimator
from npformer.tasks.estimators.filling import CONFIG
from npformer.tasks.sources.data_warnings import doubt_known
from npformer.tasks.sources.file_kinds import KINDS, choose_column, is_data_file
from npformer.tasks.sources.file_task import FileTask, Part
from npformer.tasks.sources.recipes import RECIPES, Recipe
from npformer.tasks.sources.text_lines import has_lines, read_lines
from npformer.training.storage.drawn import Drawn
from npformer.training.storage.model_file import CheckpointError
from npformer.training.storage.models import checkpoint_name, load, read_notes

OF_TABLES = (
    "text",
    "label",
    "source",
    "target",
    "id",
    "time",
    "features",
    "encoding",
    "skip_empty",
)
"""Options that say how a table is read."""


def refuse_options_of_tables(
    options: argparse.Namespace, why: str, but: Sequence[str] = ()
) -> None:
    """Raise ValueError for a given option of tables, but for some, where it would be ignored."""
    for name in OF_TABLES:
        if getattr(options, name, None) and name not in but:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} is given, and {why}; expected none")


@dataclass(frozen=True)
class Trained:
    """A model with its file, whose notes say what it was trained on."""

    path: Path
    model: Any  # a `SequenceClassifier`, or an `Estimator` for files
    force: bool

    @classmethod
    def load(cls, options: argparse.Namespace, place: Path) -> Trained:
        """Import plugins, and return what is in a file or folder.

        In the folder of a run it is the model of --split, if there is one.
        """
        load_plugins(options.plugin)
        if (place / CONFIG).is_file():
            raise ValueError(
                f"{place} is a folder in Hugging Face's layout; expected one that `npformer train` "
                f"wrote. npformer train FILE.csv --from {place} trains an encoder further, and "
                f"npformer generate {place} writes; in Python there is npformer.from_pretrained"
            )
        path = _file(place, getattr(options, "split", None))
        try:
            model = load(path, backend=options.backend, force=options.force)
        except CheckpointError as error:
            if is_data_file(path):  # by its name, which a model may have, too
                raise ValueError(
                    f"{path} is a file of data; expected a model first: a folder that `npformer "
                    "train` wrote, or a .safetensors file that npformer.save wrote"
                ) from error
            notes = read_notes(path, force=options.force) if error.unregistered else {}
            if not isinstance(plugins := notes.get("plugins"), list) or not plugins:
                raise
            again = " ".join(f"--plugin {plugin}" for plugin in plugins)
            raise ValueError(
                f"{path} needs {' and '.join(error.unregistered)}, which plugins registered for "
                f"its training. No file decides what code runs, so name them again: {again}"
            ) from error
        if not isinstance(model, SequenceClassifier | Estimator):
            raise ValueError(
                f"{path} holds a model of the class {type(model).__name__}; expected one that "
                "`npformer train` wrote, or a SequenceClassifier"
            )
        return cls(path, model, options.force)

    @cached_property
    def notes(self) -> dict[str, Any]:
        """The notes in the file."""
        return read_notes(self.path, force=self.force)

    def recipe(self) -> Recipe:
        """Return the named task."""
        if isinstance(self.model, Estimator):
            raise ValueError(
                f"{self.path} holds {a_type(self.model)}, for files; expected a model of one of "
                f"npformer's tasks: {', '.join(RECIPES)}"
            )
        stated = [type(self.notes.get(name)) for name in ("task", "split", "seed")]
        if stated != [str, str, int] or self.notes["task"] not in RECIPES:
            raise ValueError(
                f"{self.path} does not say which task, split and seed it was trained on; expected "
                "a model that `npformer train` wrote, which has test data. For others: npformer "
                f"predict {self.path} x.npy, and in Python npformer.evaluate(npformer.load(path), "
                "(x, y)) and npformer.report(npformer.load(path), x, y)"
            )
        return RECIPES[self.notes["task"]]

    def test_data(self, split: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the test data of a split of a named task, by default that of the training."""
        recipe = self.recipe()
        split = split or self.notes["split"]
        checks.choice(f"--split of task {recipe.name}", split, recipe.splits)
        return recipe.load(split, self.notes["seed"], self.model.dtype).test

    def seen(self, split: str) -> str:
        """Return a warning if training may have seen test data of a split; else ""."""
        if (split_of_training := self.notes["split"]) == split:
            return ""
        test = f"the test data of the {split} split"
        return f"it was trained on the {split_of_training} split and may have seen some of {test}"

    @property
    def kind(self) -> str:
        """The kind of files that an estimator is for."""
        return next(k for k, kind in KINDS.items() if isinstance(self.model, kind.estimator))

    def task(self) -> FileTask | None:
        """Return the file and how it was read; it may have changed since."""
        task = self.notes.get("task")
        return FileTask.from_notes(task, check=False) if isinstance(task, dict) else None

    def check_given(self, options: argparse.Namespace) -> None:
        """Check that a split is given for a named task only, and a file for a model of files."""
        of_file = isinstance(self.model, Estimator)
        if of_file and options.split is not None:
            raise ValueError("--split is given, and the model was trained on a file; expected none")
        if not of_file and options.input is not None:
            raise ValueError(
                f"{options.input} is given, and the model was not trained on a file; expected none"
            )
        if options.input is None:
            refuse_options_of_tables(options, "there is no FILE, for which it is")

    def read(self, file: str, options: argparse.Namespace, *, labelled: bool) -> Part:
        """Return the samples of another file.

        Columns are those that options name, or else those of the training.
        """
        kind, task = self.kind, self.task()
        self._check_options_of_file(file, options)
        known = task or FileTask(kind=kind, file=file)
        settings = dict[str, Any](
            encoding=options.encoding or "utf-8", label=known.label or "label"
        )
        settings |= options_typed(options, ("skip_empty", "id", "time", "label", "features"))
        roles = [*KINDS[kind].columns]
        if not labelled and self._holds_lines(file, options):
            lines = read_lines(file, encoding=settings["encoding"])
            return Part(lines, columns={roles[0]: lines})
        if not roles or (kind == "unlabelled" and self._holds_lines(file, options)):
            return replace(known, **settings).read(file, labelled=labelled)
        table = read_table(
            file,
            encoding=settings["encoding"],
            fill_short_rows=settings.get("skip_empty", False),
        )
        for role in roles if labelled else roles[:1]:
            name, column_of_training = getattr(options, role), getattr(task, role, None)
            trained = name is None and column_of_training in table.columns
            settings[role] = column_of_training if trained else choose_column(table, name, role)
        return replace(known, **settings).rows_of(table, labelled=labelled)

    def _check_options_of_file(self, file: str, options: argparse.Namespace) -> None:
        """Check that options of tables are given for a table only, and for one of this kind."""
        of_kind = KINDS[self.kind].options
        refuse_options_of_tables(options, f"the model takes {KINDS[self.kind].words}", of_kind)
        if self._holds_lines(file, options):
            refuse_options_of_tables(
                options, f"{display_name(file)} has a text in each line", ["encoding"]
            )
        if is_series_file(file):
            is_text = Path(file).suffix.lower() != ".npz"
            refuse_options_of_tables(
                options, f"{file} is no table", ["encoding"] if is_text else []
            )

    def _holds_lines(self, file: str, options: argparse.Namespace) -> bool:
        """Return whether each line of a file is a text, or a source to translate."""
        roles = [*KINDS[self.kind].columns]
        if not roles or is_fasttext_file(Path(file)):
            return False
        if file == "-" and getattr(options, roles[0], None) is not None:
            return False  # who names a column has a table
        column_of_training = getattr(self.task(), roles[0], "")
        columns = [column_of_training, *KINDS[self.kind].columns[roles[0]]]
        return has_lines(file, columns, options.encoding or "utf-8")

    def held_out(self, options: argparse.Namespace) -> Part:
        """Return the samples of the file that is given, or else the test part of the training."""
        task = self.task()
        if options.input is None:
            if task is None:
                raise ValueError(
                    f"{options.model} does not say which file it was trained on; expected a file "
                    "to measure it on"
                )
            if not len(test := self._parts()["test"]):
                raise ValueError(f"{options.model} was trained without test data; expected a file")
            return test
        samples = self.read(options.input, options, labelled=True)
        if task is not None and task.kind in ("texts", "series", "unlabelled"):
            kind, file = KINDS[task.kind].samples, display_name(options.input)
            try:
                doubt_known(kind, task.keys(self._parts()["train"]), task.keys(samples), file)
            except (OSError, ValueError):
                warnings.warn(
                    f"the training's files are gone or have changed: whether any {kind} of {file} "
                    "were also trained on cannot be told",
                    stacklevel=2,
                )
        return samples

    def files(self) -> list[Path]:
        """Return the files that the model was trained on, if it says so."""
        task = self.notes.get("task")
        sums = task.get("sha256") if isinstance(task, dict) else None
        return [Path(file) for file in sums] if isinstance(sums, dict) else []

    def _parts(self) -> dict[str, Part]:
        """Return the parts of the training's file, after checking that it is unchanged."""
        drawn = Drawn(self.path.parent, resume=True, keeps=False)
        return FileTask.from_notes(self.notes["task"]).parts(drawn=drawn)[0]


def _file(path: Path, split: str | None) -> Path:
    if not path.exists() and path.suffix != ".safetensors":
        raise ValueError(
            f"there is no folder {path}; expected one that `npformer train` wrote, or a file "
            "that npformer.save wrote"
        )
    if not path.is_dir():
        return path
    if split is not None and (path / checkpoint_name(split)).is_file():
        return path / checkpoint_name(split)
    model = path / checkpoint_name()
    if not model.exists() and (earlier := sorted(path.glob(f"replaced-*/{checkpoint_name()}"))):
        raise ValueError(
            f"the training in {path} has saved no model yet: `npformer train TASK --out {path} "
            f"--resume` goes on with it. The model of an earlier run is {earlier[-1]}"
        )
    if not model.exists() and (runs := sorted(path.glob(f"*/{checkpoint_name()}"))):
        raise ValueError(
            f"{path} is not a run, but runs are in it, such as {runs[0].parent}; name one"
        )
    return model
