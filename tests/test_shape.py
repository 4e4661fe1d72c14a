"""`python -m benchmarks shape` measures rightly, on a package of three rooms and on our own."""

import importlib
import sys

import pytest

from benchmarks import shape
from tests.needs import NEEDS
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

EXPLAINED = '''"""Sums."""
import small.ground

# Two numbers.
def add(a, b):
    """Add."""

    return a + b  # their sum
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / "small" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "small" / name).write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "small"
    for name in [name for name in sys.modules if name.partition(".")[0] == "small"]:
        del sys.modules[name]


def functions_of(calls, function):
    return [code.co_name for code in calls.deepest[function.__code__]]


@pytest.fixture
def calls(package):
    top = importlib.import_module("small.top")
    return shape.run_by(lambda: top.run(), package)


def test_files_of_the_package_are_counted_once(calls):
    assert calls.files == {"top.py", "middle/sums.py", "ground.py"}


def test_calls_between_files_are_counted_once(calls):
    assert calls.hops == {
        ("top.py", "middle/sums.py"),
        ("middle/sums.py", "ground.py"),
        ("ground.py", "middle/sums.py"),  # though `reduce` lies between them
    }


def test_a_call_to_a_room_above_goes_upward(calls):
    assert shape.upward(calls.hops, ROOMS) == {("ground.py", "middle/sums.py")}


def test_what_is_in_no_room_is_above_all():
    assert shape.upward({("top.py", "__init__.py")}, ROOMS)


def test_the_longest_way_to_a_function_counts(package):
    top = importlib.import_module("small.top")
    sums = importlib.import_module("small.middle.sums")

    def add_in_three_ways():
        sums.add(1, 2)
        top.run()
        sums.total(1, 2)

    calls = shape.run_by(add_in_three_ways, package)
    assert functions_of(calls, sums.add) == ["run", "total", "call", "add"]
    assert calls.depth(sums.add) == 4
    assert calls.depth(top.run) == 1
    assert calls.depth(sums.total) == 2


def test_what_passes_through_a_function_outside_counts_but_not_a_comprehension(package):
    top = importlib.import_module("small.top")
    sums = importlib.import_module("small.middle.sums")
    ground = importlib.import_module("small.ground")

    def outside(x, y):
        return [sums.add(x, y) for _ in range(1)]

    calls = shape.run_by(lambda: ground.call(outside, 1, 2), package)
    assert functions_of(calls, sums.add) == ["call", "outside", "add"]
    assert top.run.__code__ not in calls.deepest


def test_nothing_counts_after_a_function_has_returned(package):
    top = importlib.import_module("small.top")
    sums = importlib.import_module("small.middle.sums")

    def add_in_two_ways():
        sums.add(1, 2)
        top.run()

    assert shape.run_by(add_in_two_ways, package, until=sums.add).files == {"middle/sums.py"}


def test_tokens_are_counted_without_what_explains_the_code(package):
    (package / "middle" / "sums.py").write_text(EXPLAINED, "utf-8")
    tokens = "def add ( a , b ) : return a + b"
    assert shape.tokens_by_room(package)["middle"] == tokens.count(" ") + 1


def test_packed_statements_have_no_fewer_tokens(tmp_path):
    def tokens(text):
        (tmp_path / "a.py").write_text(text, "utf-8")
        return shape.tokens_of_code(tmp_path / "a.py")

    assert tokens("a, b = f(x), g(y)\n") >= tokens("a = f(x)\nb = g(y)\n")
    assert tokens("f(a,\n  b)\n") == tokens("f(a, b)\n")


def test_the_rooms_are_all_there_are():
    assert set(shape.ROOMS) == {floor.partition("/")[0] for floor in FLOORS if floor}


FIGURES = {
    "counts": dict.fromkeys(shape.MOST, 0) | {shape.MODULES: 121, "default: upward hops": 1},
    "tricks": {folder: dict.fromkeys(shape.KINDS, 0) for folder in shape.FOLDERS},
    "tokens": {"cli": 7, "core": 1000},
}


def test_what_is_over_its_limit_is_named(monkeypatch, capsys):
    monkeypatch.setattr(shape, "measure", lambda: (FIGURES, "core/a.py -> cli.py"))
    shape.run(["--list"])
    printed = capsys.readouterr().out
    assert "core/a.py -> cli.py" in printed
    assert "| modules loaded by `import npformer` | 121 | 120 |" in printed
    assert "| default: upward hops | 1 |  |" in printed
    assert printed.endswith("| core | 1,000 |\n| cli | 7 |\n| all | 1,007 |\n")
    with pytest.raises(SystemExit, match=r"^too much: modules loaded by `import npformer`$"):
        shape.run(["--check"])


def test_our_own_package_is_within_the_limits():
    for library in ("complexipy", "grimp"):
        pytest.importorskip(library, reason=NEEDS[library])
    figures, listed = shape.measure()
    counts = figures["counts"]
    assert shape.over_limits(counts) == []
    assert set(shape.MOST) <= set(counts)
    unlimited = set(counts) - set(shape.MOST)
    assert unlimited == {"default: engine files", "default: upward hops"}
    assert sum(figures["tokens"].values()) > 100_000
    assert "training/fit.py: fit" in listed


def test_the_way_passes_through_what_everyone_reads():
    calls = shape.way(plain=True)
    assert calls.files >= {"training/fit.py", "functional/attention.py", "optim/adam.py"}
    assert ("mixers/attention.py", "functional/attention.py") in calls.hops
    decorator, fit, *_, softmax = functions_of(calls, shape.TARGETS["softmax"])
    assert [decorator, fit, softmax] == ["checked", "fit", "softmax"]
