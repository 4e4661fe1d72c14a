"""Every test checks something, on each way through it."""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
CHECKS = {"raises", "warns", "fail", "gradcheck", "validate", "filterwarnings", "simplefilter"}
"""Calls that fail where something is wrong, or make warnings do so; besides these, what is called
assert_..., a program that must end well, and functions that call one of them."""

NOTHING_IS_RAISED = {
    "core/test_registry.py::"
    "test_what_takes_as_many_arguments_is_taken_and_so_is_what_has_no_signature",
    "core/test_checks.py::test_shapes_that_match",
    "device/test_memory.py::test_validation_fits_where_training_does",
    "engine/test_threads.py::test_where_threads_cannot_choose_their_cores_nothing_happens",
}
"""Tests whose subject refuses what is wrong: that it refuses nothing is what they check."""

NESTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


@cache
def trees() -> dict[str, ast.Module]:
    return {
        file.relative_to(TESTS).as_posix(): ast.parse(file.read_text("utf-8"))
        for file in sorted(TESTS.rglob("*.py"))
    }


def name_of_call(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def is_check(node: ast.AST, helpers: set[str]) -> bool:
    if isinstance(node, ast.Call):
        name = name_of_call(node)
        return name in CHECKS or name in helpers or name.startswith("assert_")
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.keyword) and ast.unparse(node) == "check=True"
    )


def sometimes_empty(iterated: ast.expr) -> bool:
    """Whether a loop over it may have no turn, as far as one sees: it chooses, or is empty."""
    if isinstance(iterated, ast.Tuple | ast.List | ast.Set | ast.Dict):
        return not any(True for _ in ast.iter_child_nodes(iterated))
    return isinstance(iterated, ast.ListComp | ast.SetComp | ast.GeneratorExp)


def own_nodes(statements: list[ast.stmt], everywhere: bool = False) -> list[ast.AST]:
    """Return the nodes that run whenever these statements do, or all of the same function."""
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, NESTED):
            continue
        nodes.append(node)
        if everywhere:
            waiting += ast.iter_child_nodes(node)
        elif isinstance(node, ast.If):
            branches = [own_nodes(branch) for branch in (node.body, node.orelse)]
            waiting.append(node.test)
            if all(any(is_check(inner, helpers()) for inner in branch) for branch in branches):
                nodes += branches[0]
        elif isinstance(node, ast.For):
            waiting += [node.iter, *([] if sometimes_empty(node.iter) else node.body)]
        elif isinstance(node, ast.Try):
            waiting += [*node.body, *node.finalbody]
        else:
            waiting += ast.iter_child_nodes(node)
    return nodes


@cache
def helpers() -> set[str]:
    """Return the names of functions that check something, if only by calling another that does."""
    functions = [
        (node.name, own_nodes(node.body, everywhere=True))
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("test_")
    ]
    checking: set[str] = set()
    while more := {
        name
        for name, nodes in functions
        if name not in checking and any(is_check(node, checking) for node in nodes)
    }:
        checking |= more
    return checking


@cache
def all_tests() -> dict[str, ast.FunctionDef]:
    nodes = [(name, node) for name, tree in trees().items() for node in tree.body]
    functions = [(name, node) for name, node in nodes if isinstance(node, ast.FunctionDef)]
    functions_by_name = {f"{name}::{node.name}": node for name, node in functions}
    return {name: node for name, node in functions_by_name.items() if "::test_" in name}


def test_no_test_ends_before_it_has_checked_anything() -> None:
    returns = {
        name: [n.lineno for n in own_nodes(node.body, everywhere=True) if isinstance(n, ast.Return)]
        for name, node in all_tests().items()
    }
    assert {name: lines for name, lines in returns.items() if lines} == {}


def test_every_test_checks_something_whatever_its_case() -> None:
    assert len(all_tests()) > 2000
    bodies = {name: own_nodes(node.body) for name, node in all_tests().items()}
    known = helpers()
    without = [n for n, nodes in bodies.items() if not any(is_check(one, known) for one in nodes)]
    assert set(without) == NOTHING_IS_RAISED
