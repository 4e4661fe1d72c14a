"""Names that do not say what a value or a function is: `found`, `given`, `made_of`, `in_full`.

Two measures, of a folder or a file:

- local names that say nothing, for 1,000 assignments: each time that one of `VAGUE` is bound, by an
  assignment, a loop, a comprehension or a `with`, over the number of `=` statements;
- functions and methods whose name begins with a participle or a preposition, as a share of all
  without those of Python's own, such as `__init__`. Nouns of the field that look like participles,
  such as `embedding`, and verbs such as `embed` are not counted.
"""

import argparse
import ast
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.results_files import ROOT


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


VAGUE = word_set(
    """
    about asked both done each found given gone got kept made others own part parts piece
    pieces said seen several some such taken these those told used usual wanted whole
    """
)
"""Words that say how a value was got, or that it is one of several, but not what it is."""

PREPOSITIONS = word_set(
    """
    about above after as at before behind below beside between by down for from in into like
    near of off on out over since than to under until up with within without
    """
)

IRREGULAR_PARTICIPLES = word_set(
    """
    begun bound broken built chosen done drawn fed found given gone got held hidden kept known
    laid led left lost made met paid seen sent shown sold spent spoken stood taken thought
    thrown told understood won worn wound written
    """
)

VERBS_IN_ED = word_set(
    """
    embed feed need seed shed speed
    """
)

NOUNS_IN_ING = word_set(
    """
    averaging clipping embedding encoding mapping masking mixing padding pooling setting
    smoothing string training warning
    """
)
"""Terms of the field, and nouns of the language."""

LIMITS = {
    "npformer": (20.0, 7.0),
    "tests": (5.0, 6.0),
    "benchmarks": (131.0, 12.0),
    "docs/site": (89.0, 12.0),
    "examples": (57.0, 4.0),
}
"""What both measures of a folder may be. The package's are the aim; the others fall, never rise."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Names:
    """The names of some files.

    `assignments` counts statements; `local_names` and `functions` count each binding and each
    definition by name; `places` has `file:line: name` of what the two measures count.
    """

    assignments: int = 0
    local_names: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    def add(self, source: str, file: str) -> None:
        """Count the names of a source text."""
        lines: list[tuple[int, str]] = []
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Assign):
                self.assignments += 1
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.local_names[node.id] += 1
                if node.id in VAGUE:
                    lines.append((node.lineno, node.id))
            elif isinstance(node, FUNCTIONS) and not node.name.startswith("__"):
                self.functions[node.name] += 1
                if begins_badly(node.name):
                    lines.append((node.lineno, f"{node.name}()"))
        self.places += [f"{file}:{line}: {name}" for line, name in sorted(lines)]

    @property
    def vague(self) -> float:
        """Local names that say nothing, for 1,000 assignments."""
        count = sum(self.local_names[name] for name in VAGUE)
        return 1000.0 * count / max(self.assignments, 1)

    @property
    def functions_that_begin_badly(self) -> float:
        """Percent of functions whose name begins with a participle or a preposition."""
        count = sum(n for name, n in self.functions.items() if begins_badly(name))
        return 100.0 * count / max(self.functions.total(), 1)


def begins_badly(name: str) -> bool:
    """Return whether a function's name begins with a participle or a preposition."""
    word = name.strip("_").split("_")[0]
    if word in PREPOSITIONS or word in IRREGULAR_PARTICIPLES:
        return True
    if word.endswith("ed"):
        return word not in VERBS_IN_ED and len(word) > 3
    return word.endswith("ing") and word not in NOUNS_IN_ING


def names_in(path: Path) -> Names:
    """Return the names of a file, or of all files in a folder."""
    names = Names()
    for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
        shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        names.add(file.read_text("utf-8"), str(shown))
    return names


def run(arguments: list[str]) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks names", description=__doc__)
    parser.add_argument("paths", nargs="*", default=list(LIMITS), help="folders or files")
    parser.add_argument("--list", action="store_true", help="show where each of them is")
    parser.add_argument("--common", type=int, metavar="N", help="show the N most frequent names")
    options = parser.parse_args(arguments)
    for path in options.paths:
        names = names_in(ROOT / path)
        print(
            f"{path}: {names.vague:.1f} local names that say nothing in 1,000 assignments; "
            f"{names.functions_that_begin_badly:.1f} % of functions begin with a participle or a "
            "preposition"
        )
        if options.list:
            print(*names.places, sep="\n")
        if options.common:
            print(
                *(f"{n:5} {name}" for name, n in names.local_names.most_common(options.common)),
                sep="\n",
            )
