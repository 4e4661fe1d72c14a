"""Small changes to the package's source, by mutmut's operators, and a sample of them.

mutmut is used only as a library of operators. Its own runner puts the variants of a
function behind a wrapper, and so leaves out constants of modules and classes, decorated methods
and defaults that are tuples.
"""

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

LEFT_OUT = (
    "npformer/learn/museum/",
    "npformer/engine/gpu/",
    "npformer/engine/kernel_cases.py",
    "npformer/engine/kernel_check.py",
)
"""Intentional bugs, and kernels that only a GPU runs, with what checks them there."""

HARMLESS = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.Raise, cst.Assert)
"""Parts that are not changed: types, and the texts of errors, which other tests match."""


@dataclass(frozen=True)
class Mutation:
    """A change at one place."""

    file: str  # from the root of the repository
    function: str  # dotted name of the enclosing function or class; "" at module level
    was: str
    now: str
    occurrence: int  # its number among equal changes in one function
    lines: range = field(compare=False)  # of the statement
    of_function: range = field(compare=False)
    node: cst.CSTNode = field(compare=False, repr=False)
    changed: cst.CSTNode = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """A name without line numbers, so that edits elsewhere in the file keep it."""
        counted = f" #{self.occurrence}" if self.occurrence else ""
        return f"{self.file}, {self.function or 'module'}: {self.was} -> {self.now}{counted}"

    def rank(self, seed: int) -> str:
        """Return the sample's sort key."""
        return hashlib.sha256(f"{seed} {self.name}".encode()).hexdigest()


class _Collector(cst.CSTVisitor):
    """Collects the mutations of one file."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str, module: cst.Module) -> None:
        super().__init__()
        self.file, self.module = file, module
        self.owners: list[tuple[str, range]] = []
        self.statement: range | None = None
        self.found: list[Mutation] = []
        self.seen: Counter[tuple[str, str, str]] = Counter()

    def _lines(self, node: cst.CSTNode) -> range:
        at = self.get_metadata(PositionProvider, node)
        return range(at.start.line, at.end.line + 1)

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, HARMLESS) or _is_list_of_names(node) or _is_check(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.owners.append((node.name.value, self._lines(node)))
        if isinstance(node, cst.SimpleStatementLine):
            self.statement = self._lines(node)
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                for changed in operator(node):
                    self._note(node, changed)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self.owners.pop()
        if isinstance(original_node, cst.SimpleStatementLine):
            self.statement = None

    def _note(self, node: cst.CSTNode, changed: cst.CSTNode) -> None:
        was, now = (" ".join(self.module.code_for_node(n).split()) for n in (node, changed))
        function = ".".join(name for name, _ in self.owners)
        lines = self.statement or self._lines(node)
        of_function = self.owners[-1][1] if self.owners else lines
        n = self.seen[function, was, now]
        self.seen[function, was, now] += 1
        self.found.append(
            Mutation(
                file=self.file,
                function=function,
                was=was,
                now=now,
                occurrence=n,
                lines=lines,
                of_function=of_function,
                node=node,
                changed=changed,
            )
        )


def _is_list_of_names(node: cst.CSTNode) -> bool:
    """Whether a statement is ``__all__ = [...]``."""
    return isinstance(node, cst.Assign) and any(
        isinstance(target.target, cst.Name) and target.target.value == "__all__"
        for target in node.targets
    )


def _is_check(node: cst.CSTNode) -> bool:
    """Whether a node calls `len` or `isinstance`: any test notices a missing argument."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value in ("len", "isinstance")
    )


def mutations_of(root: Path, file: str) -> tuple[cst.Module, list[Mutation]]:
    """Return the syntax tree of a file, and all changes of it."""
    wrapper = MetadataWrapper(cst.parse_module((root / file).read_text("utf-8")), True)
    collector = _Collector(file, wrapper.module)
    wrapper.visit(collector)
    return wrapper.module, collector.found


def sample(root: Path, size: int, seed: int) -> list[tuple[Mutation, str]]:
    """Return mutations, at most one per statement, each with the source of its changed file.

    The rank of each depends only on the seed and on itself, so that a sample stays the same
    where the package stays the same.
    """
    files = sorted(path.relative_to(root).as_posix() for path in root.glob("npformer/**/*.py"))
    everything = {f: mutations_of(root, f) for f in files if not f.startswith(LEFT_OUT)}
    ranked = sorted(
        (mutation for _, found in everything.values() for mutation in found),
        key=lambda mutation: mutation.rank(seed),
    )
    chosen: list[tuple[Mutation, str]] = []
    taken: set[tuple[str, range]] = set()
    for mutation in ranked:
        if (place := (mutation.file, mutation.lines)) in taken:
            continue
        module = everything[mutation.file][0]
        source = module.deep_replace(mutation.node, mutation.changed).code
        if not _is_a_change(module.code, source):
            continue
        taken.add(place)
        chosen.append((mutation, source))
        if len(chosen) == size:
            break
    return chosen


def _is_a_change(before: str, after: str) -> bool:
    """Whether Python can compile the changed source, and its meaning has changed."""
    try:
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except SyntaxError:
        return False
