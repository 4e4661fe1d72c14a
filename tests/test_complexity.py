"""Complexity is measured function by function, and only that of functions that ran counts twice."""

import importlib
import sys

import pytest

from tests.needs import NEEDS

pytest.importorskip("complexipy", reason=NEEDS["complexipy"])

from benchmarks import complexity
from benchmarks.shape import run_by

BRANCHES = "".join(f"    if x == {n}:\n        return {n}\n" for n in range(9))
FILES = {
    "__init__.py": "",
    "plain.py": f"""
import functools

@functools.cache
def decorated(x):
{BRANCHES}
def unused(x):
{BRANCHES}
def outer(x):
    def inner(x):
{BRANCHES.replace("    ", "        ")}
    return inner(x)

def simple(x):
    return x

class Thing:
    def method(self, x):
{BRANCHES.replace("    ", "        ")}
""",
    "engine/__init__.py": "",
    "engine/fast.py": f"def fast(x):\n{BRANCHES}{BRANCHES}",
    "long.py": f"def long(x):\n{BRANCHES}{BRANCHES}",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / "sample" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sample" / name).write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "sample"
    for name in [name for name in sys.modules if name.partition(".")[0] == "sample"]:
        del sys.modules[name]


def test_functions_above_the_limit_are_found_outside_of_the_engine(package):
    measured = complexity.functions(package)
    assert {f.name for f in measured} == {
        "decorated",
        "unused",
        "outer",
        "simple",
        "Thing.method",
        "fast",
        "long",
    }
    assert [f.name for f in measured if f.complexity > complexity.MOST] == ["fast", "long"]
    (long,) = complexity.too_complex(measured)
    assert str(long) == f"long.py:1: long ({long.complexity})"


def test_of_the_way_only_functions_that_ran_are_found(package):
    plain = importlib.import_module("sample.plain")

    def names_after(call):
        codes = set(run_by(call, package).deepest)
        measured = complexity.functions(package)
        return {f.name for f in complexity.too_complex_on_the_way(measured, codes, package)}

    assert names_after(lambda: plain.simple(1)) == set()
    assert names_after(lambda: plain.decorated(1)) == {"decorated"}
    assert names_after(lambda: plain.outer(1)) == {"outer"}
    assert names_after(lambda: plain.Thing().method(1)) == {"Thing.method"}
