"""The house: short files, docstrings that weigh less than code, and rooms that one finds."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "npformer").rglob("*.py"))

LONGEST = 300
"""Lines of a file that people read."""

AGAIN = ("npformer/engine/cpu/", "npformer/engine/gpu/", "npformer/exercises/solved/")
"""The pairs of `functional` once more, under the same names: as kernels, and as exercises."""

QUESTION = re.compile(
    r"^\| (?P<question>.+\?) \| `(?P<file>\S+)` \| `(?P<name>\S+)` \|$", re.MULTILINE
)
QUESTIONS = list(QUESTION.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8")))


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def definitions(file: Path) -> dict[str, ast.AST]:
    """Return what a file defines: functions, classes, their methods, and names that it assigns."""
    found: dict[str, ast.AST] = {}

    def collect(body: list[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[owner + node.name] = node
                if isinstance(node, ast.ClassDef):
                    collect(node.body, f"{owner}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = (t.id for t in targets if isinstance(t, ast.Name))
                found.update((owner + name, node) for name in names)

    collect(ast.parse(file.read_text("utf-8")).body, "")
    return found


def weights(file: Path) -> tuple[int, int]:
    """Return how many lines of docstrings and how many of code a file has; comments are neither."""
    text = file.read_text("utf-8")
    strings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            strings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code = [
        line
        for number, line in enumerate(text.splitlines(), 1)
        if number not in strings and line.strip() and not line.lstrip().startswith("#")
    ]
    return len(strings), len(code)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_file_is_longer_than_a_sitting(file):
    assert len(file.read_text("utf-8").splitlines()) <= LONGEST, "two ideas: part them"


@pytest.mark.parametrize("folder", ["functional", "layers", "mixers", "models", "core", "engine"])
def test_docstrings_weigh_less_than_code(folder):
    of_files = [weights(file) for file in FILES if name_of(file).startswith(f"npformer/{folder}/")]
    docstrings, code = (sum(column) for column in zip(*of_files, strict=True))
    assert docstrings < code


def test_there_are_twenty_questions():
    assert len(QUESTIONS) >= 20
    assert len({found["file"] for found in QUESTIONS}) >= 18, "they lead into one room"


@pytest.mark.parametrize("found", QUESTIONS, ids=lambda found: found["question"])
def test_a_question_leads_to_its_answer(found):
    """The file defines what is asked for. No other file does, but for those in `AGAIN`."""
    file = ROOT / found["file"]
    assert found["name"] in definitions(file)
    others = [name_of(f) for f in FILES if f != file and found["name"] in definitions(f)]
    assert [name for name in others if not name.startswith(AGAIN)] == []


def test_version_and_addresses_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {project['version']}\n" in citation
    assert f"\nrepository-code: {project['urls']['Repository']}\n" in citation
    assert all(url.startswith(project["urls"]["Repository"]) for url in project["urls"].values())
    assert f" {project['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
