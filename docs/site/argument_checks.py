"""Which statements of a function only check its arguments, and what they check in words.

Pages fold them, so that a reader meets the mathematics first.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "npformer"
CHECK = re.compile(r"checks\.\w+|_?check_\w+|backend_of")
"""Functions that raise an error about an argument, or return it."""
DTYPE, SHAPE, VALUE = "the dtype of {}", "the shape of {}", "the value of {}"
WORDS = {
    **dict.fromkeys(("floating", "boolean"), DTYPE),
    **dict.fromkeys(("shape", "sequences", "gradient", "filled", "has_tokens", "at_most"), SHAPE),
    **dict.fromkeys(("whole", "positive", "number", "not_negative", "rate"), VALUE),
    **dict.fromkeys(("flag", "choice", "instance"), VALUE),
}
"""What the functions of `npformer.core.checks` check; the brackets stand for arguments."""
SAID_OF_MODULE = "which array library runs (NumPy or CuPy)"
NOTHING_SAID = "the arguments"


class Fold(NamedTuple):
    """Lines, counted from the function's first as 1, that only check, and what they check."""

    first: int
    last: int
    words: str


def folds(tree: ast.FunctionDef) -> list[Fold]:
    """Return the checks of a function; neighbours are one fold."""
    checks = _all_checks(tree)
    return [_fold(run) for run in _runs(tree.body, checks)]


def _runs(body: list[ast.stmt], checks: set[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield the longest runs of neighbours that are checks, also within other statements."""
    run: list[ast.stmt] = []
    for statement in body:
        if statement in checks:
            run.append(statement)
            continue
        if run:
            yield run
            run = []
        for block in ("body", "orelse"):
            yield from _runs(getattr(statement, block, []), checks)
    if run:
        yield run


def _fold(run: list[ast.stmt]) -> Fold:
    subjects_by_words: dict[str, list[str]] = {}
    for words, subject in (pair for statement in run for pair in _words(statement)):
        subjects = subjects_by_words.setdefault(words, [])
        if subject not in subjects:
            subjects.append(subject)
    phrases = [words.format(", ".join(subjects)) for words, subjects in subjects_by_words.items()]
    last = run[-1].end_lineno
    assert last
    return Fold(run[0].lineno, last, "; ".join(phrases) or NOTHING_SAID)


def _words(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield what each call in a statement checks, and of which argument."""
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name == "array_module":
            yield SAID_OF_MODULE, ""
        elif name.startswith("checks."):
            subject = _subject(node)
            known_words = WORDS.get(name.removeprefix("checks."), NOTHING_SAID)
            yield known_words if subject else NOTHING_SAID, subject
        elif name != "backend_of" and CHECK.fullmatch(name):
            yield words_of_checks().get(name) or NOTHING_SAID, ""


def _subject(call: ast.Call) -> str:
    """Return what a call of `checks` is about: a name, or those of its keywords."""
    if not call.args:
        return ", ".join(keyword.arg for keyword in call.keywords if keyword.arg)
    first = call.args[0]
    if isinstance(first, ast.Constant):
        return str(first.value)
    return ast.unparse(first) if isinstance(first, ast.Name) else ""


@cache
def words_of_checks() -> dict[str, str]:
    """Return what the docstrings of the package's own checks say that they check."""
    words_by_name = {}
    files = sorted(PACKAGE.rglob("*.py"), key=lambda file: file.parent.name == "functional")
    for node in (node for file in files for node in ast.parse(file.read_text("utf-8")).body):
        if isinstance(node, ast.FunctionDef) and CHECK.fullmatch(node.name):
            words_by_name[node.name] = _without_verb(ast.get_docstring(node) or "")
    return words_by_name


def _without_verb(docstring: str) -> str:
    """Return the first sentence of a docstring, from what it checks on."""
    sentence = " ".join(re.split(r"\.\s|\.$|;", docstring)[0].split())
    words = re.sub(r"^(Return .* after checking|Check)( that)? ", "", sentence)
    return "" if words == sentence else words.replace("{", "{{").replace("}", "}}")


def _all_checks(tree: ast.FunctionDef) -> set[ast.stmt]:
    """Return the statements that only check, and those that only they need."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    checks: set[ast.stmt] = set()
    while True:
        known = len(checks)
        for statement in statements:
            if _is_check(statement, checks) or _serves_checks(statement, tree, checks):
                checks.add(statement)
        if len(checks) == known:
            return checks if _checks_anything(checks) else set()


def _checks_anything(checks: set[ast.stmt]) -> bool:
    """Return whether more is among the statements than the name of the array library."""
    return any(
        isinstance(statement, ast.Raise) or any(words != SAID_OF_MODULE for words, _ in pairs)
        for statement, pairs in ((statement, _words(statement)) for statement in checks)
    )


def _is_check(statement: ast.stmt, checks: set[ast.stmt]) -> bool:
    if isinstance(statement, ast.Raise):
        return True
    if isinstance(statement, ast.If):
        return all(inner in checks for inner in [*statement.body, *statement.orelse])
    if not isinstance(statement, ast.Expr | ast.Assign) or not isinstance(
        statement.value, ast.Call
    ):
        return False
    name = ast.unparse(statement.value.func)
    return CHECK.fullmatch(name) is not None or name == "array_module"


def _serves_checks(statement: ast.stmt, tree: ast.FunctionDef, checks: set[ast.stmt]) -> bool:
    """Return whether a statement makes a name that nothing but checks reads."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    in_checks = {node for check in checks for node in ast.walk(check)}
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    return bool(uses) and all(node in in_checks for node in uses)
