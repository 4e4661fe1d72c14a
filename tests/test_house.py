"""The house: short files, docstrings that weigh less than code, and rooms that one finds."""

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from benchmarks.shape import lines_by_room
from tests.test_imports import FLOORS

Node = TypeVar("Node", bound=ast.AST)
ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "npformer").rglob("*.py"))

LONGEST = 300
"""Lines of a file that people read."""

BUDGET: dict[str, int] = {
    "core": 1695,
    "functional": 1189,
    "layers": 649,
    "mixers": 904,
    "models": 1069,
    "optim": 456,
    "proof": 1354,
    "data": 1960,
    "engine": 3549,
    "training": 3752,
    "interop": 2027,
    "tasks": 2940,
    "learn": 4427,
    "cli": 1728,
    "__init__": 28,
    "__main__": 1,
}
"""Lines of code a room may have: no docstrings, comments, imports or blank lines.

They may fall. One rises only for a feature that an issue names, in a commit whose message says why
in a line that begins with ``Budget:``; the last such commit is what a test compares with.
"""

IN_ALL = 27_728
"""The same of the whole package."""

LONGEST_FUNCTION = 60
"""Lines of a function in `training`, without its signature and docstring: an epoch on a screen."""

LINES = {"tests": 48_999, "benchmarks docs/site": 11_000}
"""Of all files in some folders together."""

MOST_FIELDS = 12
"""Fields of an object in `training`, private ones included."""

MOST_FILES = 15
"""Files in `training`."""

AGAIN = ("npformer/engine/cpu/", "npformer/engine/gpu/", "npformer/learn/exercises/solved/")
"""The pairs of `functional` once more, under the same names: as kernels, and as exercises."""

QUESTION = re.compile(
    r"^\| (?P<question>.+\?) \| `(?P<file>\S+)` \| `(?P<name>\S+)` \|$", re.MULTILINE
)
QUESTIONS = list(QUESTION.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8")))


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


@cache
def definitions(file: Path) -> dict[str, ast.AST]:
    """Return what a file defines: functions, classes, their methods, and names that it assigns."""
    found: dict[str, ast.AST] = {}

    def collect(body: list[ast.stmt], owner: str):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[owner + node.name] = node
                if isinstance(node, ast.ClassDef):
                    collect(node.body, f"{owner}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update((owner + t.id, node) for t in targets if isinstance(t, ast.Name))

    collect(ast.parse(file.read_text("utf-8")).body, "")
    return found


def weights(file: Path) -> tuple[int, int]:
    """Return how many lines of docstrings and how many of code a file has; comments are neither."""
    text = file.read_text("utf-8")
    strings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            strings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    rest = [line.strip() for n, line in enumerate(text.splitlines(), 1) if n not in strings]
    return len(strings), sum(line != "" and line[0] != "#" for line in rest)


def test_every_room_keeps_its_budget():
    found = lines_by_room()
    assert set(found) == set(BUDGET)
    over = {floor: n for floor, n in found.items() if n > BUDGET[floor]}
    assert over == {}, "take away what the change makes unnecessary, or say why there is more"
    assert sum(found.values()) <= IN_ALL
    assert sum(BUDGET.values()) == IN_ALL, "who raises one number raises the other"


def test_budgets_do_not_rise_in_silence():
    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    last = git("log", "-1", "--format=%H", "--grep=^Budget:").strip()
    if not last:
        pytest.skip("no history with a budget: not a clone, or a shallow one")
    tree = ast.parse(git("show", f"{last}:tests/test_house.py"))
    (before,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "BUDGET"
    )
    risen = {r: (before.get(r, 0), n) for r, n in BUDGET.items() if n > before.get(r, 0)}
    assert risen == {}, "say why in a line of the commit's message that begins with 'Budget:'"


TRAINING = sorted((ROOT / "npformer" / "training").glob("*.py"))


def test_training_is_a_small_floor():
    assert len(TRAINING) <= MOST_FILES


def of_training(kind: type[Node]) -> dict[str, Node]:
    """Return the functions or classes that `training` defines, by file and name."""
    found = {f"{name_of(f)} {name}": n for f in TRAINING for name, n in definitions(f).items()}
    return {name: node for name, node in found.items() if isinstance(node, kind)}


def test_functions_of_training_fit_on_a_screen():
    def length(node: ast.FunctionDef) -> int:
        body = node.body[1:] if ast.get_docstring(node) else node.body
        return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0

    lengths = {name: length(node) for name, node in of_training(ast.FunctionDef).items()}
    assert len(lengths) > 50
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


def test_objects_of_training_have_few_fields():
    def fields(node: ast.ClassDef) -> set[str]:
        return {
            each.target.id
            for each in node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        } | {
            each.attr
            for each in ast.walk(node)
            if isinstance(each, ast.Attribute)
            and isinstance(each.ctx, ast.Store)
            and isinstance(each.value, ast.Name)
            and each.value.id == "self"
        }

    found = {name: fields(node) for name, node in of_training(ast.ClassDef).items()}
    assert len(found) > 5
    assert {name: names for name, names in found.items() if len(names) > MOST_FIELDS} == {}


def test_what_stands_beside_the_package_has_a_budget_too():
    for folders, most in LINES.items():
        files = (file for folder in folders.split() for file in (ROOT / folder).rglob("*.py"))
        assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= most, folders


def test_no_file_is_longer_than_a_sitting():
    lengths = {name_of(file): len(file.read_text("utf-8").splitlines()) for file in FILES}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}, "two ideas: part them"


def test_docstrings_weigh_less_than_code():
    for folder in ("functional", "layers", "mixers", "models", "core", "engine"):
        found = [weights(f) for f in FILES if name_of(f).startswith(f"npformer/{folder}/")]
        docstrings, code = (sum(column) for column in zip(*found, strict=True))
        assert docstrings < code, folder


def test_the_table_of_the_house_has_every_room_in_order():
    after = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("| room |")[1]
    rows = re.findall(r"^\| `(\w+)/` \|", after.split("\n\n")[0], re.MULTILINE)
    assert rows == list(dict.fromkeys(floor.partition("/")[0] for floor in FLOORS if floor))
    entries = {f.name for f in (ROOT / "npformer").iterdir() if not f.name.startswith("__")}
    assert entries - {"py.typed"} == set(rows)


def test_questions_lead_to_their_answers():
    """The file defines what is asked for. No other file does, but for those in `AGAIN`."""

    def files_with(name: str) -> list[str]:
        return [name_of(file) for file in FILES if name in definitions(file)]

    answers = {found["question"]: found["file"] for found in QUESTIONS}
    assert len(answers) >= 20
    assert len(set(answers.values())) >= 18, "they lead into one room"
    defined = {
        found["question"]: [f for f in files_with(found["name"]) if not f.startswith(AGAIN)]
        for found in QUESTIONS
    }
    assert {q: files for q, files in defined.items() if files != [answers[q]]} == {}


def test_version_and_addresses_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {project['version']}\n" in citation
    assert f"\nrepository-code: {project['urls']['Repository']}\n" in citation
    assert all(url.startswith(project["urls"]["Repository"]) for url in project["urls"].values())
    assert f" {project['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
