"""Is every case that an earlier commit tested still tested? Names of tests may differ.

A case is what the parameters of one test are set to, as text; tests without parameters count as
equal cases. In each folder of tests, the cases and the assertions (`assert`, `pytest.raises` and
functions such as `assert_allclose`) of both commits are counted. What became fewer is shown.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from benchmarks.results_files import ROOT
from benchmarks.same import checkout_of

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
FUNCTION = re.compile(r"<function [^>]*(<locals>|<lambda>)?[^>]*>")
RAISES = ("raises", "warns", "deprecated_call")
LONGEST = 200
"""Characters of a case that are shown."""


def folder_of(path: Path, tests: Path) -> str:
    """Return the folder of a test file, below the folder of all tests."""
    return path.relative_to(tests).parent.as_posix()


class Collected:
    """A plugin of pytest that writes each collected case to a file."""

    def __init__(self, tests: Path, file: Path) -> None:
        self.tests = tests
        self.file = file

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write [folder, case] of each test."""
        checkout = str(self.tests.parent)
        cases = [
            [folder_of(item.path, self.tests), case_of(item).replace(checkout, ".")]
            for item in session.items
        ]
        self.file.write_text(json.dumps(cases), "utf-8")


def case_of(item: pytest.Item) -> str:
    """Return the parameters of a test as text: their values, without names of functions."""
    if not hasattr(item, "callspec"):
        return ""
    values = [ADDRESS.sub("", repr(value)) for value in item.callspec.params.values()]
    return FUNCTION.sub("<function>", ", ".join(sorted(values)))


def cases_in(checkout: Path) -> dict[str, Counter[str]]:
    """Return how often each case is tested, by folder, in a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.json"
        subprocess.run(
            [
                sys.executable,
                "-P",
                str(Path(__file__).resolve()),
                str(checkout / "tests"),
                str(file),
            ],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": f"{checkout}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        pairs = json.loads(file.read_text("utf-8"))
    cases = defaultdict(Counter)
    for folder_name, case in pairs:
        cases[folder_name][case] += 1
    return cases


def assertions_in(checkout: Path) -> Counter[str]:
    """Return how many assertions the tests of each folder have, in a checkout."""
    counts = Counter()
    for file in (checkout / "tests").rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text("utf-8")))
        counts[folder_of(file, checkout / "tests")] += sum(is_assertion(node) for node in nodes)
    return counts


def is_assertion(node: ast.AST) -> bool:
    """Return whether a node asserts something."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in RAISES or name.startswith("assert_")


def run(arguments: list[str]) -> None:
    """Compare this checkout with an earlier commit; exit with 1 if something is tested less."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cases", description=__doc__)
    parser.add_argument("revision", help="the earlier commit, as git names it")
    options = parser.parse_args(arguments)
    with checkout_of(options.revision) as earlier:
        cases_before, cases_now = cases_in(earlier), cases_in(ROOT)
        assertions_before, assertions_now = assertions_in(earlier), assertions_in(ROOT)
    for name, before, now in (
        ("cases", total(cases_before), total(cases_now)),
        ("assertions", assertions_before.total(), assertions_now.total()),
    ):
        print(f"{name}: {before:,} before, {now:,} now")
    missing = fewer(cases_before, cases_now)
    for line in missing:
        print(line)
    for folder, count in sorted((assertions_before - assertions_now).items()):
        print(f"tests/{folder}: {count} fewer assertions")
    if missing:
        raise SystemExit(1)


def fewer(before: dict[str, Counter[str]], now: dict[str, Counter[str]]) -> list[str]:
    """Return a line for each case that is tested less often now, by folder."""
    lines = []
    for folder in sorted(before):
        lost = before[folder] - now.get(folder, Counter())
        for case, count in lost.items():
            shown = " ".join(case.split())[:LONGEST] or "without parameters"
            lines.append(f"tests/{folder}: {count} fewer of the case {shown}")
    return lines


def total(cases: dict[str, Counter[str]]) -> int:
    """Return how many cases all folders have."""
    return sum(counts.total() for counts in cases.values())


if __name__ == "__main__":
    tests, output = map(Path, sys.argv[1:])
    collection = Collected(tests, output)
    options = ["-q", "--collect-only", "-m", "", "-n", "0", "-p", "no:cacheprovider"]
    sys.exit(pytest.main([*options, str(tests)], plugins=[collection]))
