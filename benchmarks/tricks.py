"""Tricks that pack statements: literals unpacked once, rows splatted, methods made by `partial`."""

import argparse
import ast
import keyword
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path

from benchmarks.results_files import ROOT

LITERAL = "literal unpacked once"
ROWS = "rows splatted into a display"
LOCALS = "locals()"
CONDITIONAL = "conditional inside a conditional"
PARTIAL = "function made by partial"
VARS = "attributes set through vars()"
KINDS = (LITERAL, ROWS, LOCALS, CONDITIONAL, PARTIAL, VARS)

FOLDERS = ("npformer", "tests", "benchmarks", "docs/site", "examples")
"""What is searched by default, from the root of the repository."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (ast.Module, ast.ClassDef, *FUNCTIONS)
SETS_ATTRIBUTES = ("__setstate__", "__set__")
"""Methods that restore an object or are a descriptor: they have no other way."""


def tricks(source: str, imported_elsewhere: Collection[str] = ()) -> list[tuple[int, str]]:
    """Return (line, kind) of each trick in a source text, in the order of lines.

    `imported_elsewhere` has names that other files import: of the module's own constants, those
    are not used only here.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    lines = {
        LITERAL: [
            *unpacked_directly(nodes),
            *unpacked_by_name(tree, imported_elsewhere),
            *unpacked_by_name_in_functions(nodes),
        ],
        ROWS: lines_where(has_rows, nodes),
        LOCALS: lines_where(is_call_of_locals, nodes),
        CONDITIONAL: lines_where(has_inner_conditional, nodes),
        PARTIAL: made_by_partial(tree),
        VARS: set_through_vars(tree),
    }
    return sorted((line, kind) for kind, its_lines in lines.items() for line in its_lines)


def lines_where(condition: Callable[[ast.AST], bool], nodes: list[ast.AST]) -> list[int]:
    """Return the lines of the nodes for which a condition holds."""
    return [node.lineno for node in nodes if condition(node)]


def is_call_of_locals(node: ast.AST) -> bool:
    """Return whether a node is `locals()`."""
    return is_call_of(node, "locals")


def is_call_of(node: ast.AST, *names: str) -> bool:
    """Return whether a node calls one of some functions: `name(...)` or `module.name(...)`."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.attr in names
    return isinstance(function, ast.Name) and function.id in names


def is_dict_literal(node: ast.expr, in_display: bool = False) -> bool:
    """Return whether a dict is written out where it stands, and need not be.

    `{"a": 1}`, `dict(a=1)`, `{"a": 1} | {"b": 2}`, one of two by a condition, and a comprehension
    over a display of constants. Not a union with what is no literal, in which one side overrides
    the other; nor, in a call, `{name: 1}` and `{"class": 1}`, which no keyword says.
    """
    if isinstance(node, ast.Dict):
        if None in node.keys:
            return False
        return in_display or not node.keys or any(map(is_keyword, node.keys))
    if isinstance(node, ast.Call):
        keywords = [argument.arg for argument in node.keywords]
        return is_call_of(node, "dict") and not node.args and None not in keywords
    if isinstance(node, ast.BinOp):
        union = isinstance(node.op, ast.BitOr)
        return union and is_dict_literal(node.left) and is_dict_literal(node.right)
    if isinstance(node, ast.IfExp):
        return is_dict_literal(node.body) and is_dict_literal(node.orelse)
    return isinstance(node, ast.DictComp) and is_over_constants(node.generators)


def is_keyword(key: ast.expr | None) -> bool:
    """Return whether a dict's key could be the name of an argument."""
    if not isinstance(key, ast.Constant):
        return False
    return str(key.value).isidentifier() and not keyword.iskeyword(str(key.value))


def is_sequence_literal(node: ast.expr) -> bool:
    """Return whether a sequence is written out where it stands.

    A generator is not, nor what is there only if a condition holds: `[*names, *extra]`.
    """
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return True
    if isinstance(node, ast.ListComp | ast.SetComp):
        return is_over_constants(node.generators)
    return is_split_text(node)


def is_argument_literal(node: ast.expr) -> bool:
    """Return whether a call could say itself what it unpacks by one star."""
    if isinstance(node, ast.IfExp):
        return is_argument_literal(node.body) and is_argument_literal(node.orelse)
    return is_sequence_literal(node)


def is_one_of_two(node: ast.expr) -> bool:
    """Return whether a sequence is one of two by a condition, neither of them empty."""
    if not isinstance(node, ast.IfExp):
        return False
    return all(
        isinstance(branch, ast.Tuple | ast.List) and branch.elts
        for branch in (node.body, node.orelse)
    )


def is_split_text(node: ast.expr) -> bool:
    """Return whether a node is `"a b c".split()`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "split"
        and isinstance(node.func.value, ast.Constant)
    )


def is_over_constants(generators: list[ast.comprehension]) -> bool:
    """Return whether a comprehension runs over a display of constants: a table of them."""
    (first, *_) = generators
    display = first.iter
    if isinstance(display, ast.Tuple | ast.List | ast.Set):
        return all(isinstance(element, ast.Constant) for element in display.elts)
    return is_split_text(display)


def unpacked(node: ast.AST) -> list[tuple[ast.expr, bool]]:
    """Return what a call or a display unpacks, and whether by two stars."""
    if isinstance(node, ast.Call):
        by_two_stars = [argument.value for argument in node.keywords if argument.arg is None]
        return [(v, False) for v in starred(node.args)] + [(v, True) for v in by_two_stars]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [(value, True) for key, value in pairs if key is None]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [(value, False) for value in starred(node.elts)]
    return []


def starred(elements: list[ast.expr]) -> list[ast.expr]:
    """Return what a star unpacks among arguments or elements; an assignment's targets are not."""
    return [e.value for e in elements if isinstance(e, ast.Starred) and isinstance(e.ctx, ast.Load)]


def unpacked_directly(nodes: list[ast.AST]) -> Iterator[int]:
    """Yield the lines of literals that are unpacked where they stand; of rows, see `has_rows`."""
    for node in nodes:
        for value, two_stars in unpacked(node):
            if two_stars:
                packed = is_dict_literal(value, in_display=isinstance(node, ast.Dict))
            else:
                packed = isinstance(node, ast.Call) and is_argument_literal(value)
            if packed:
                yield value.lineno


def unpacked_by_name_in_functions(nodes: list[ast.AST]) -> Iterator[int]:
    """Yield the lines where a function or class names a literal only to unpack it once."""
    for scope in nodes:
        if isinstance(scope, SCOPES) and not isinstance(scope, ast.Module):
            yield from unpacked_by_name(scope)


def unpacked_by_name(scope: ast.AST, excused: Collection[str] = ()) -> Iterator[int]:
    """Yield the lines where a scope names a literal that it only unpacks, and only once."""
    literals = literals_of(scope)
    if not literals:
        return
    nodes = list(ast.walk(scope))
    loads = Counter(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    unpacks = Counter(
        (value.id, two_stars)
        for node in nodes
        for value, two_stars in unpacked(node)
        if isinstance(value, ast.Name)
    )
    for name, value in literals.items():
        if name not in excused and loads[name] == unpacks[name, is_dict_literal(value)] == 1:
            yield value.lineno


def literals_of(scope: ast.AST) -> dict[str, ast.expr]:
    """Return the literals that a scope gives names, each of them once; not to outer names."""
    stores: Counter[str] = Counter()
    outer: set[str] = set()
    literals: dict[str, ast.expr] = {}
    for node in in_scope(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            stores[node.id] += 1
        elif isinstance(node, ast.Global | ast.Nonlocal):
            outer.update(node.names)
        literals.update((name, value) for name, value in named_values(node) if is_literal(value))
    return {n: value for n, value in literals.items() if stores[n] == 1 and n not in outer}


def is_literal(node: ast.expr) -> bool:
    """Return whether a dict or a sequence is written out where it gets a name."""
    return is_dict_literal(node) or is_sequence_literal(node) or is_one_of_two(node)


def named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) of a statement that assigns a value to a name."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        targets = [node.target]
    else:
        return
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value


def in_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module, class or function, without those of the ones inside it."""
    remaining = list(ast.iter_child_nodes(scope))
    while remaining:
        node = remaining.pop()
        yield node
        if not isinstance(node, SCOPES):
            remaining += ast.iter_child_nodes(node)


def has_rows(node: ast.AST) -> bool:
    """Return whether a display splats a literal into itself: `(*("a", "b"), *("c", "d"))`."""
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        return False
    return any(is_sequence_literal(value) for value, _ in unpacked(node))


def has_inner_conditional(node: ast.AST) -> bool:
    """Return whether a conditional expression has another as an operand."""

    def operands(operand: ast.expr) -> Iterator[ast.expr]:
        yield operand
        if isinstance(operand, ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.Compare):
            for child in ast.iter_child_nodes(operand):
                if isinstance(child, ast.expr):
                    yield from operands(child)

    if not isinstance(node, ast.IfExp):
        return False
    return any(
        isinstance(operand, ast.IfExp)
        for part in (node.test, node.body, node.orelse)
        for operand in operands(part)
    )


def made_by_partial(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that give a module, a class or an object a function made by `partial`."""
    for scope in ast.walk(tree):
        if not isinstance(scope, SCOPES):
            continue
        names_are_public = isinstance(scope, ast.Module | ast.ClassDef)
        for node in in_scope(scope):
            if is_assignment_of_partial(node) and (names_are_public or sets_attribute(node)):
                yield node.lineno


def is_assignment_of_partial(node: ast.AST) -> bool:
    """Return whether a statement assigns a function made by `partial`."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    return any(is_call_of(value, "partial", "partialmethod") for value in values_of(node.value))


def sets_attribute(node: ast.Assign | ast.AnnAssign) -> bool:
    """Return whether an assignment has an attribute among its targets."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(map(names_attributes, targets))


def names_attributes(target: ast.expr) -> bool:
    """Return whether an assignment's target is an attribute, or a tuple with one."""
    if isinstance(target, ast.Tuple | ast.List):
        return any(map(names_attributes, target.elts))
    return isinstance(target, ast.Attribute)


def values_of(value: ast.expr) -> list[ast.expr]:
    """Return what an assignment may give its targets: a value, each of two, those of a tuple."""
    if isinstance(value, ast.IfExp):
        return [*values_of(value.body), *values_of(value.orelse)]
    if isinstance(value, ast.Tuple | ast.List):
        return [inner for element in value.elts for inner in values_of(element)]
    if isinstance(value, ast.GeneratorExp | ast.ListComp):
        return values_of(value.elt)
    return [value]


def set_through_vars(node: ast.AST) -> Iterator[int]:
    """Yield the lines that set attributes through `vars(x)` or `x.__dict__`."""
    if isinstance(node, FUNCTIONS) and getattr(node, "name", "") in SETS_ATTRIBUTES:
        return
    if is_set_through_vars(node):
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from set_through_vars(child)


def is_set_through_vars(node: ast.AST) -> bool:
    """Return whether a node sets attributes through `vars(x)` or `x.__dict__`.

    `x.__dict__ = y.__dict__` does not: two objects share their attributes.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        sets = node.func.attr in ("update", "setdefault", "__setitem__")
        return sets and is_attributes(node.func.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store) and is_attributes(node.value)
    if isinstance(node, ast.Assign):
        return any(map(is_attributes, node.targets)) and not is_attributes(node.value)
    return False


def is_attributes(node: ast.expr) -> bool:
    """Return whether a node is an object's attributes: `vars(x)` or `x.__dict__`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "__dict__"
    return is_call_of(node, "vars") and isinstance(node, ast.Call) and len(node.args) == 1


def names_imported_by(source: str) -> set[str]:
    """Return the names that a file imports from others, and those that it asks modules for."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {
        alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@cache
def names_imported_anywhere() -> set[str]:
    """Return the names that files of the repository import from others."""
    everywhere = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    return {name for file in everywhere for name in names_imported_by(file.read_text("utf-8"))}


def tricks_in(paths: Collection[Path]) -> list[tuple[Path, int, str]]:
    """Return (file, line, kind) of each trick in some files and folders of the repository."""
    files = sorted(
        {file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))}
    )
    imported = names_imported_anywhere()
    return [
        (file, line, kind)
        for file in files
        for line, kind in tricks(file.read_text("utf-8"), imported)
    ]


def counts_by_folder() -> dict[str, dict[str, int]]:
    """Return {folder: {kind: number of tricks}}."""
    table = {}
    for folder in FOLDERS:
        numbers = Counter(kind for _, _, kind in tricks_in([ROOT / folder]))
        table[folder] = {kind: numbers[kind] for kind in KINDS}
    return table


def run(words):
    """List the tricks as `file:line: kind`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks tricks", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; by default, all")
    chosen = parser.parse_args(words)
    paths = [path.resolve() for path in chosen.paths] or [ROOT / folder for folder in FOLDERS]
    for file, line, kind in tricks_in(paths):
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        print(f"{name}:{line}: {kind}")
