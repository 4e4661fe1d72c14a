"""Circles of imports are found wherever the import is, and whatever hides it."""

import tomllib
from pathlib import Path

import pytest

from tests.needs import NEEDS

pytest.importorskip("grimp", reason=NEEDS["grimp"])

from benchmarks import circles
from tests.test_imports import FLOORS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def circles_of(tmp_path, monkeypatch):
    """Return a function from the text of two files of a room to the circles between them."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "rooms_of_test"

    def write(first, second):
        for name, text in {"__init__": "", "room/__init__": "", "room/a": first}.items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / f"{name}.py").write_text(text, "utf-8")
        (package / "room" / "b.py").write_text(second, "utf-8")
        (package / "other.py").write_text("import rooms_of_test.room.a\n", "utf-8")
        return circles.circles(package)

    return write


TO_A = "from rooms_of_test.room import a\n"
TO_B = "from rooms_of_test.room import b\n"


@pytest.mark.parametrize(
    "back",
    [
        TO_A,
        f"def f():\n    {TO_A}",
        "import importlib\nimportlib.import_module('rooms_of_test.room.a')\n",
        "from importlib import import_module\nimport_module('rooms_of_test.room.a')\n",
        "__import__('rooms_of_test.room.a')\n",
    ],
)
def test_a_circle_is_found(circles_of, back):
    assert len(circles_of(TO_B, back)) == 1


@pytest.mark.parametrize(
    "back",
    ["", "import rooms_of_test.other\n", "import importlib\nimportlib.import_module('json')\n"],
)
def test_what_is_no_circle_inside_a_room_is_not_found(circles_of, back):
    assert circles_of(TO_B, back) == []


def test_the_layers_of_import_linter_are_the_rooms_in_order():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = {c["id"]: c for c in project["tool"]["importlinter"]["contracts"]}
    rooms = list(dict.fromkeys(floor.partition("/")[0] for floor in FLOORS if floor))
    assert contracts["rooms"]["layers"] == rooms[::-1]
    assert contracts["circles"]["ancestors"] == ["npformer.*"]
