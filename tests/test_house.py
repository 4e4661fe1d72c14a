"""The house: files and functions of a readable length, and rooms that one finds."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TypeVar

from tests.test_imports import FLOORS

Node = TypeVar("Node", bound=ast.AST)
ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "npformer").rglob("*.py"))

LONGEST = 400
"""Lines of a file that people read."""

LONGEST_FUNCTION = 60
"""Lines of a function in `training`, without its signature and docstring: an epoch on a screen."""

AGAIN = ("npformer/engine/cpu/", "npformer/engine/gpu/", "npformer/learn/exercises/solved/")
"""The pairs of `functional` once more, under the same names: as kernels, and as exercises.

A question about one of these folders names a file that alone in its folder has the answer."""

QUESTION = re.compile(
    r"^\| (?P<question>.+\?) \| `(?P<file>\S+)` \| `(?P<name>\S+)` \|$", re.MULTILINE
)
QUESTIONS = list(QUESTION.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8")))


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


@cache
def definitions(file: Path) -> dict[str, ast.AST]:
    """Return what a file defines: functions, classes, their methods, and names that it assigns."""
    nodes: dict[str, ast.AST] = {}

    def collect(body: list[ast.stmt], owner: str):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                nodes[owner + node.name] = node
                if isinstance(node, ast.ClassDef):
                    collect(node.body, f"{owner}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                nodes.update((owner + t.id, node) for t in targets if isinstance(t, ast.Name))

    collect(ast.parse(file.read_text("utf-8")).body, "")
    return nodes


TRAINING = sorted((ROOT / "npformer" / "training").glob("*.py"))


def make_for_training(kind: type[Node]) -> dict[str, Node]:
    """Return the functions or classes that `training` defines, by file and name."""
    nodes = {f"{name_of(f)} {name}": n for f in TRAINING for name, n in definitions(f).items()}
    return {name: node for name, node in nodes.items() if isinstance(node, kind)}


def test_functions_of_training_fit_on_a_screen():
    def length(node: ast.FunctionDef) -> int:
        body = node.body[1:] if ast.get_docstring(node) else node.body
        return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0

    lengths = {name: length(node) for name, node in make_for_training(ast.FunctionDef).items()}
    assert len(lengths) > 50
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


def test_no_file_is_longer_than_a_sitting():
    lengths = {name_of(file): len(file.read_text("utf-8").splitlines()) for file in FILES}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}, "two ideas: part them"


def test_the_table_of_the_house_has_every_room_in_order():
    after = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("| room |")[1]
    rows = re.findall(r"^\| `(\w+)/` \|", after.split("\n\n")[0], re.MULTILINE)
    assert rows == list(
        dict.fromkeys(floor.partition("/")[0] for floor in FLOORS if floor not in ("", "loop"))
    )
    entries = {f.name for f in (ROOT / "npformer").iterdir() if not f.name.startswith("__")}
    assert entries - {"py.typed", "loop.py"} == set(rows)
    assert len(rows) <= 14, "with the loop, fifteen entries are what one takes in at a glance"


def test_questions_lead_to_their_answers():
    """The file defines what is asked for. No other file does, but for those in `AGAIN`."""

    def folder_of(file: str) -> str:
        return next((folder for folder in AGAIN if file.startswith(folder)), "")

    def files_with(name: str, folder: str) -> list[str]:
        """Return the files of a folder in `AGAIN`, or else those outside of all of them."""
        files = [name_of(file) for file in FILES if name in definitions(file)]
        return [file for file in files if folder_of(file) == folder]

    answers = {row["question"]: row["file"] for row in QUESTIONS}
    assert len(answers) == len(QUESTIONS), "a question is asked twice"
    assert len(answers) >= 20
    assert len(set(answers.values())) >= 18, "they lead into one room"
    defined = {
        row["question"]: files_with(row["name"], folder_of(row["file"])) for row in QUESTIONS
    }
    assert {q: files for q, files in defined.items() if files != [answers[q]]} == {}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_versions_agree():
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f" {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_addresses_agree():
    repository = PROJECT["urls"]["Repository"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nrepository-code: {repository}\n" in citation
    assert all(url.startswith(repository) for url in PROJECT["urls"].values())
