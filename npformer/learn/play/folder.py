"""The folder of a page: its address with the token, and a folder for each of its runs."""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from npformer.data.json_file import read_json
from npformer.learn.play.settings import MOST_RUNS, Settings
from npformer.training.storage.files import write_whole
from npformer.training.storage.models import checkpoint_name

SERVER, SHOWN, SETTINGS, POINTS = "server.json", "shown.json", "settings.json", "points.jsonl"

FIGURES = "norms", "dead", "angles", "apart"
"""What a point has of each layer."""

MOST_BYTES = 1 << 20
"""The largest file of an address or of settings, and the longest line of one with points."""

MOST_OF_POINTS = 1 << 24
"""Bytes of points that are all read; of a longer file every second line, or every third, is."""


@dataclass
class Folder:
    """Where a page keeps what it needs to go on after a restart.

    Others may have written what is in it: nothing there is believed, and nothing is removed.
    """

    path: Path

    def address(self, port: int | None = None) -> tuple[int, str]:
        """Return the port, 0 for any, and the token.

        They are those of last time if this person wrote them here, and nobody else may read them.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        other_names = {path.name for path in self.path.iterdir() if not path.name.startswith(".")}
        if other_names and (
            checkpoint_name() in other_names or not any(map(_is_ours, other_names))
        ):
            raise FileExistsError(
                f"{self.path} is no folder of a page, and what is in it stays alone; expected an "
                "empty folder, or one with runs. To try out a model that was trained there: "
                f"npformer play {self.path} --export page.html, and open that file"
            )
        place = self.path / SERVER
        stored = _read(place)
        known, token = (stored.get(name) for name in ("port", "token"))
        if os.path.lexists(place) and not isinstance(token, str):
            raise FileExistsError(
                f"{place} is no address that npformer play wrote, and would be replaced; expected "
                "a folder for the page alone. Name another one"
            )
        secret = bool(stored) and _is_secret(place.lstat(), stored.get("place"))
        if not isinstance(known, int) or not 0 < known < 1 << 16:
            known = 0
        return port or known, str(token) if secret else secrets.token_urlsafe(24)

    def keep_address(self, port: int, token: str) -> None:
        """Write the port and the token, for the owner alone."""
        place = self.path / SERVER
        place.unlink(missing_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"token": token, "port": port, "place": _place(os.fstat(handle))}, file)

    def begin(self, settings: Sequence[Settings]) -> list[str]:
        """Make the folders of new runs beside all that is there, and return their names."""
        names = []
        for one in settings:
            names.append(f"run-{max(map(_number, self.path.iterdir()), default=0) + 1}")
            place = self.path / names[-1]
            place.mkdir()
            write_whole(place / SETTINGS, f"{json.dumps(one.to_dict(), indent=2)}\n".encode())
        if (shown := self.path / SHOWN).is_symlink():  # what it points to would be replaced
            shown.unlink()
        write_whole(shown, json.dumps(names).encode())
        return names

    def runs(self) -> dict[str, Settings]:
        """Return the settings of all runs, by name, in order; damaged ones are left out."""
        settings_by_name = {}
        for place in sorted(self.path.glob("run-*"), key=_number):
            with suppress(OSError, ValueError, TypeError):
                if _number(place):
                    settings_by_name[place.name] = settings_of(place)
        return settings_by_name

    def shown(self) -> dict[str, Settings]:
        """Return the runs that were begun last, as `runs` does."""
        every, last = self.runs(), _read(self.path / SHOWN, list)
        names = [name for name in every if name in last] or [*every]
        return {name: every[name] for name in names[-MOST_RUNS:]}

    def add_points(self, name: str, points: list[dict[str, Any]]) -> None:
        """Write what a run has measured."""
        with suppress(OSError), (self.path / name / POINTS).open("a") as file:
            file.writelines(json.dumps(point) + "\n" for point in points)

    def points(self, name: str) -> list[dict[str, Any]]:
        """Return what a run has measured so far; for a repeated step, its last point."""
        points_by_place: dict[tuple[int, bool], dict[str, Any]] = {}
        with suppress(OSError), (self.path / name / POINTS).open("rb") as file:
            every = 1 + os.fstat(file.fileno()).st_size // MOST_OF_POINTS
            for k, line in enumerate(iter(partial(file.readline, MOST_BYTES), b"")):
                if k % every == 0 or b'"loss": null' in line:
                    with suppress(ValueError, RecursionError):  # the last one may be half a line
                        if _is_point(point := json.loads(line)):
                            points_by_place[place_of(point)] = point
        return [points_by_place[key] for key in sorted(points_by_place)]


def settings_of(place: Path) -> Settings:
    """Return the settings of a run in its folder.

    Raises ValueError for a folder with links or pipes: what a run writes would land elsewhere.
    """
    for path in (place, *place.iterdir()):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ValueError(f"{path} is a link or a pipe; expected a run's files and folders")
    return Settings.of(_read(place / SETTINGS))


def place_of(point: dict[str, Any]) -> tuple[int, bool]:
    """Return a point's place in order: the figures of an epoch come after its last step."""
    return point["step"], point["loss"] is None


def _is_point(point: Any) -> bool:
    """Return whether a line is a point as `Remote` sends them."""
    if not isinstance(point, dict) or not {"step", "epoch", "loss", "lr", "accuracy"} <= {*point}:
        return False

    def fits(name: str, value: Any) -> bool:
        numbers_of_value = (value or []) if name in FIGURES else [value]
        numbers = (int, float, type(None))
        return isinstance(numbers_of_value, list) and all(
            type(one) in numbers for one in numbers_of_value
        )

    is_whole = all(type(n) is int and 0 <= n < 1 << 53 for n in (point["step"], point["epoch"]))
    return is_whole and all(fits(*item) for item in point.items())


def _read(place: Path, kind: type = dict) -> Any:
    """Return what is in a file of JSON; nothing if it is damaged, a link, or no such file."""
    with suppress(OSError, ValueError):
        about = place.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_size <= MOST_BYTES:
            return read_json(place, kind)
    return kind()


def _is_ours(name: str) -> bool:
    """Return whether a page writes something of this name into its folder."""
    return name in (SERVER, SHOWN) or _number(Path(name)) > 0


def _number(place: Path) -> int:
    """Return the number of a run's folder; 0 for any other name."""
    found = re.fullmatch(r"run-([1-9][0-9]*)", place.name)
    return int(found[1]) if found else 0


def _place(about: os.stat_result) -> list[int]:
    """Return what a copy of a file, wherever it comes from, does not have."""
    return [about.st_dev, about.st_ino]


def _is_secret(about: os.stat_result, place: Any) -> bool:
    """Return whether a file was written where it is, by this person, for nobody else."""
    mine = about.st_uid == os.getuid() and not about.st_mode & 0o077
    return mine and place == _place(about)
