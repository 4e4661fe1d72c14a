"""`python -m benchmarks shape` counts rightly, on a package of three rooms and on our own."""

import importlib
import sys

import pytest

from benchmarks import shape
from tests.test_imports import FLOORS

ROOMS = "ground", "middle", "top"
FILES = {
    "__init__.py": "",
    "ground.py": '''"""Calls what it is given, also by way of a library."""
from functools import reduce


def call(function, *numbers):
    """Return what the function makes of all numbers."""
    if not numbers:
        return None
    return reduce(function, numbers)
''',
    "middle/__init__.py": "",
    "middle/sums.py": """import small.ground


def add(a, b):
    return a + b


def total(*numbers):
    # down, from where `add` is called: up
    return small.ground.call(add, *numbers)
""",
    "top.py": '''TEXT = """one

two"""
from small.middle.sums import total

def run():
    for _ in range(2): total(1, 2)
''',
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / "small" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "small" / name).write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "small"
    for name in [name for name in sys.modules if name.partition(".")[0] == "small"]:
        del sys.modules[name]


def test_lines_and_calls_are_counted_once_and_only_inside_the_package(package):
    top = importlib.import_module("small.top")
    lines, calls = shape.run_by(lambda: top.run(), package)
    above = {("top.py", 7), ("middle/sums.py", 5), ("middle/sums.py", 10)}
    assert lines == above | {("ground.py", 7), ("ground.py", 9)}
    assert calls == {
        ("top.py", "middle/sums.py"),
        ("middle/sums.py", "ground.py"),
        ("ground.py", "middle/sums.py"),  # though `reduce` lies between them
    }
    assert shape.upward(calls, ROOMS) == {("ground.py", "middle/sums.py")}
    assert shape.upward({("top.py", "__init__.py")}, ROOMS)  # what is in no room is the roof


def test_lines_of_code_are_counted_without_what_explains_them(package):
    found = shape.lines_by_room(package)
    assert found == {"__init__": 0, "ground": 4, "middle": 4, "top": 5}


def test_the_rooms_are_all_there_are():
    assert set(shape.ROOMS) == {floor.partition("/")[0] for floor in FLOORS if floor}


@pytest.mark.slow
def test_what_is_over_its_limit_is_named(monkeypatch, capsys):
    monkeypatch.setattr(shape, "modules", lambda: 121)
    monkeypatch.setattr(shape, "lines_by_room", lambda: {"cli": 7, "core": 1000})
    monkeypatch.setattr(shape, "way", lambda plain: ({("core/a.py", 1)}, {("core/a.py", "cli.py")}))
    shape.run(["--list"])
    printed = capsys.readouterr().out
    assert "core/a.py -> cli.py" in printed
    assert "| modules loaded by `import npformer` | 121 | 120 |" in printed
    assert "| default: upward hops | 1 |  |" in printed
    assert printed.endswith("| core | 1,000 |\n| cli | 7 |\n| all | 1,007 |\n")
    with pytest.raises(SystemExit, match=r"^too much: modules loaded by `import npformer`$"):
        shape.run(["--check"])


def test_the_way_passes_through_what_everyone_reads():
    lines, calls = shape.way(plain=True)
    files = {file for file, _ in lines}
    assert files >= {"training/fit.py", "functional/attention.py", "optim/adam.py"}
    assert ("mixers/averaging.py", "functional/heads.py") in calls
