"""The folder of a page: its address with the token, and a folder for each of its runs."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer.learn.play.settings import Settings
from npformer.training.storage.files import write_whole

SERVER, SETTINGS, POINTS = "server.json", "settings.json", "points.jsonl"


@dataclass
class Folder:
    """Where a page keeps what it needs to go on after a restart."""

    path: Path

    def address(self, port: int | None = None) -> tuple[int, str]:
        """Return the port, 0 for any, and the token; only the owner may read the file with both."""
        self.path.mkdir(parents=True, exist_ok=True)
        stored: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            stored = json.loads((self.path / SERVER).read_text("utf-8"))
        token = stored.get("token")
        if not isinstance(token, str) or len(token) < 20:
            token = secrets.token_urlsafe(24)
        known = stored.get("port")
        return port or (known if isinstance(known, int) else 0), token

    def keep_address(self, port: int, token: str) -> None:
        """Write the port and the token, for the owner alone."""
        place = self.path / SERVER
        place.unlink(missing_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"token": token, "port": port}, file)

    def of_run(self, name: str) -> Path:
        """Return the folder of a run."""
        return self.path / name

    def begin(self, name: str, settings: Settings) -> Path:
        """Make the folder of a new run, in place of an earlier one."""
        place = self.of_run(name)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        content = json.dumps(settings.to_dict(), indent=2) + "\n"
        write_whole(place / SETTINGS, content.encode())
        return place

    def forget(self, names: list[str]) -> None:
        """Remove the folders of runs."""
        for name in names:
            shutil.rmtree(self.of_run(name), ignore_errors=True)

    def runs(self) -> dict[str, Settings]:
        """Return the settings of earlier runs, by name; damaged ones are left out."""
        found = {}
        for place in sorted(self.path.glob(f"run-*/{SETTINGS}")):
            with suppress(OSError, ValueError, TypeError):
                found[place.parent.name] = Settings.of(json.loads(place.read_text("utf-8")))
        return found

    def add_points(self, name: str, points: list[dict[str, Any]]) -> None:
        """Write what a run has measured."""
        with suppress(OSError), (self.of_run(name) / POINTS).open("a") as file:
            file.writelines(json.dumps(point) + "\n" for point in points)

    def points(self, name: str) -> list[dict[str, Any]]:
        """Return what a run has measured so far; for a repeated step, its last point."""
        try:
            lines = (self.of_run(name) / POINTS).read_text("utf-8").splitlines()
        except (OSError, ValueError):
            return []
        found: dict[tuple[int, bool], dict[str, Any]] = {}
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):  # the last one may be half a line
                point = json.loads(line)
                found[place_of(point)] = point
        return [found[key] for key in sorted(found)]


def place_of(point: dict[str, Any]) -> tuple[int, bool]:
    """Return a point's place in order: the figures of an epoch come after its last step."""
    return point["step"], point["loss"] is None
