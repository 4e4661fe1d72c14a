"""What a test file imports is installed by the README's command for tests, or asked for first."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

from tests.conftest import IN_TURN

ROOT = Path(__file__).resolve().parents[1]
OURS = {"npformer", "tests", "docs", "benchmarks"}
BROUGHT_BY = {"sklearn": "scikit-learn", "joblib": "scikit-learn"}
"""Packages whose distribution has another name."""

OF_RANKS = {f"tests/training/distributed/{name}.py" for name in ("devices", "fake_nccl")}
"""Only ranks import them, and tests that start them are skipped without mpi4py."""


@cache
def brought() -> set[str]:
    """Return the names of the dependencies and of what the extra `test` installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = project["dependencies"] + project["optional-dependencies"]["test"]
    return {re.split(r"[>=\[; ]", requirement)[0] for requirement in requirements}


def imported(body: list[ast.stmt]) -> set[str]:
    """Return the packages that these statements import as they run, but not those in a `try`."""
    packages: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import):
            packages |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            packages.add(node.module.partition(".")[0])
        elif isinstance(node, ast.If | ast.With | ast.ClassDef):
            packages |= imported(node.body) | imported(getattr(node, "orelse", []))
    return packages


def missing(source: str) -> set[str]:
    """Return the packages that a file imports, though the command for tests does not bring them."""
    theirs = imported(ast.parse(source).body) - set(sys.stdlib_module_names) - OURS
    skips = set(re.findall(r'importorskip\(\s*"(\w+)', source))
    return {name for name in theirs - skips if BROUGHT_BY.get(name, name) not in brought()}


def test_files_import_what_the_command_for_tests_brings():
    files = {file.relative_to(ROOT).as_posix(): file for file in (ROOT / "tests").rglob("*.py")}
    by_file = {name: missing(files[name].read_text("utf-8")) for name in set(files) - OF_RANKS}
    assert {name: packages for name, packages in by_file.items() if packages} == {}, (
        'pip install ".[test]" does not bring these: use pytest.importorskip, with a reason'
    )


def test_an_import_of_something_else_is_found():
    assert missing("import numpy, tests.pairs, os.path\nfrom sklearn import svm") == set()
    code = "import matplotlib.pyplot as plt\nif plt:\n    from torch import nn"
    assert missing(code) == {"matplotlib", "torch"}
    assert missing('torch = pytest.importorskip("torch")\nfrom torch import nn') == set()


def test_every_skip_for_want_of_a_library_says_how_to_install_it():
    calls = {}
    for file in sorted(set((ROOT / "tests").rglob("*.py")) - {Path(__file__)}):
        for call in re.findall(r"\.importorskip\((.*)\)", file.read_text("utf-8")):
            calls[f"{file.relative_to(ROOT)}: {call}"] = call
    assert len(calls) > 50
    assert [place for place, call in calls.items() if "reason=NEEDS[" not in call] == []


def test_what_runs_in_turn_is_there():
    assert [name for name in IN_TURN if not (ROOT / name).exists()] == []
