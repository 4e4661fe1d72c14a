"""The folder of `npformer train`: which run it belongs to, and what becomes of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import npformer
from npformer.data.text_file import display_name
from npformer.training.storage.checkpoint_folder import CHECKPOINT, reserve
from npformer.training.storage.drawn import DRAWN, KIND
from npformer.training.storage.files import write_whole
from npformer.training.storage.model_file import is_npformers
from npformer.training.storage.models import checkpoint_name

RUN = "run.json"
"""Written first and moved away first: its presence says which run the other files belong to."""

REPORT = "report.html"
"""What `npformer look` writes."""

KNOWN = {"format", "npformer", "options", "plugins"}

MAY_DIFFER = ("epochs", "workers", "shard_moments", "micro_batch", "backend", "precision")
"""Options that may change when a run goes on; `fit` says what that means for the numbers."""


@dataclass
class RunFolder:
    """One run's folder.

    Attributes
    ----------
    path : Path
    splits : tuple of str
        Of the task; each may have a model.
    plugins : list of str
    resume, overwrite : bool
        What is to become of an earlier run: it goes on, or this one replaces it.
    saved : dict or None
        What the run in it was begun with; None if there is no run.
    """

    path: Path
    splits: tuple[str, ...]
    plugins: list[str] = field(default_factory=list)
    resume: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise ValueError("--resume and --overwrite are both given; expected one of the two")
        self.saved = self._read()

    def options(self, given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the run: those `given`, otherwise the saved or the `usual` ones.

        Raises ValueError if there is an earlier run that cannot go on with what is given.
        """
        if not self.resume or not (self.saved or self._remains()):
            return {**usual, **given}
        if self.saved is None:
            raise ValueError(
                f"{self.path} holds {self._describe()}, which has no {RUN} and so cannot go on. "
                "--overwrite begins anew in its place, and --out names another folder"
            )
        saved = self.saved["options"]
        wrong = [
            f"{name} is {value!r}, and was {saved.get(name, 'not given')!r}"
            for name, value in given.items()
            if name not in MAY_DIFFER and saved.get(name) != value
        ]
        if wrong:
            raise ValueError(
                f"{self.path} holds another run: {'; '.join(wrong)}. To go on with it, leave out "
                "what it was begun with; --overwrite begins anew, --out names another folder"
            )
        if missing := [name for name in self.saved["plugins"] if name not in self.plugins]:
            again = " ".join(f"--plugin {name}" for name in missing)
            raise ValueError(
                f"{self.path} was begun with plugins. No file decides what code runs, so name them "
                f"again: {again}"
            )
        return {**usual, **saved, **given}

    def _describe(self) -> str:
        """Return a description of the run in the folder."""
        if self.saved is None:
            return "files of an earlier run"
        saved = self.saved["options"]
        return f"a run of {display_name(str(saved.get('task')))} with {saved.get('mixer')}"

    def _remains(self) -> list[Path]:
        """Return the results of an earlier run; its own description alone is no loss."""
        return [] if self._half_set_aside() else self._results()

    @contextmanager
    def begun(self, options: Mapping[str, Any]) -> Iterator[None]:
        """Lock the folder, set an earlier run aside unless it goes on, and write `RUN`.

        Raises ValueError if there is an earlier run that nobody asked to go on or to replace.
        """
        if self._remains() and not (self.resume or self.overwrite):
            raise ValueError(
                f"{self.path} holds {self._describe()}; expected a folder for this run alone. "
                "--resume goes on with that run, --overwrite begins anew in its place, and --out "
                "names another folder"
            )
        folders = (self.path, *self.path.parents)
        new_folders = [folder for folder in folders if not folder.exists()]
        with reserve(self.path):
            if self._read() != self.saved:
                raise ValueError(f"{self.path}: another run has begun there; choose another --out")
            if self.files() and (not self.resume or self._half_set_aside()):
                self._set_aside()
            description = {
                "format": 1,
                "npformer": npformer.__version__,
                "options": dict(options),
                "plugins": self.plugins,
            }
            write_json(self.path / RUN, description)
            try:
                yield
            except BaseException:
                if not self.resume and not self._results():
                    self._undo(new_folders)
                raise

    def _undo(self, new_folders: list[Path]) -> None:
        """Leave all as it was before a run that never began: its options were wrong."""
        for file in self.files():
            file.unlink()
        self._restore()
        if new_folders:
            for lock in self.path.rglob(".lock"):
                lock.unlink()
        for folder in new_folders:
            _remove_empty(folder)

    def files(self) -> list[Path]:
        """Return the files of a run that exist, `RUN` first."""
        names = [
            RUN,
            DRAWN,
            "metrics.json",
            "history.json",
            "curves.png",
            REPORT,
            checkpoint_name(),
        ]
        names += [checkpoint_name(split) for split in self.splits]
        files = [self.path / name for name in names if (self.path / name).is_file()]
        checkpoints = self.path / "checkpoints"
        return files + sorted(
            file for name in (CHECKPOINT, DRAWN) for file in checkpoints.rglob(name)
        )

    def _results(self) -> list[Path]:
        """Return the files of a run except its own description, and what it drew for its steps."""
        return [file for file in self.files() if file.name != RUN and not _is_drawn(file)]

    def _set_aside(self) -> None:
        """Move an earlier run into a folder below, until this one has finished."""
        aside = self.path / f"replaced-{len(self._aside()) + (not self._half_set_aside())}"
        for file in self.files():
            target = aside / file.relative_to(self.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)

    def _restore(self) -> None:
        """Move the run that was set aside last back to its place."""
        if aside := self._aside():
            for file in reversed(RunFolder(aside[-1], self.splits).files()):
                file.replace(self.path / file.relative_to(aside[-1]))
            _remove_empty(aside[-1])

    def _half_set_aside(self) -> bool:
        """Return whether a move was interrupted: it had taken the first file, and not the last."""
        aside = self._aside()
        return bool(aside) and self.saved is None and (aside[-1] / RUN).exists()

    def _aside(self) -> list[Path]:
        """Return the folders of runs that were set aside, the last one at the end."""
        return [*takewhile(Path.is_dir, (self.path / f"replaced-{n}" for n in count(1)))]

    def forget_replaced(self) -> None:
        """Remove runs that were set aside: this one has finished."""
        for aside in self._aside():
            for file in RunFolder(aside, self.splits).files():
                file.unlink()
            _remove_empty(aside)

    def _read(self) -> dict[str, Any] | None:
        path = self.path / RUN
        if not path.is_file():
            return None
        try:
            saved = json.loads(path.read_text("utf-8"))
            usable = isinstance(saved["options"], dict) and isinstance(saved["plugins"], list)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{path} is damaged ({error}); --out names another folder") from error
        if not usable or not set(saved) <= KNOWN:
            raise ValueError(
                f"{path} has {', '.join(map(repr, saved))} in a form that this version of npformer "
                "does not know; a later one may have written it. Update it, or choose another --out"
            )
        return dict(saved)


def _is_drawn(file: Path) -> bool:
    """Return whether a file holds what a run drew, and is none of a person that has its name."""
    return file.name == DRAWN and is_npformers(file, KIND)


def write_json(path: Path, values: Any) -> None:
    """Write a file of JSON, whole or not at all; of what has a `to_dict`, what that returns."""
    words = json.dumps(values, indent=2, default=lambda each: each.to_dict())
    write_whole(path, f"{words}\n".encode())


def _remove_empty(folder: Path) -> None:
    """Remove a folder and those below it, if no file is left in them."""
    for path in (*sorted(folder.rglob("*"), reverse=True), folder):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
