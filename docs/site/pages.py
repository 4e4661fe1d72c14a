"""Write what the code of a page prints into the page: ``python -m docs.site.pages [PAGE ...]``.

The Python blocks of a page run in order, in one namespace, in an empty folder. The text block
that follows a block holds what it prints. If a comment names a file and functions,
``<!-- source: npformer/functional/linear.py linear_backward -->``, the Python block
below holds their source without docstrings, below the imports that it needs. It is not run with
the others, but a test pastes it into a namespace of its own. A block of `python needs=cupy` is left
as it is where that is not there: packages, or folders of weights, with commas between them.

With ``--check`` nothing is written; the command shows how pages differ from what it would write.
"""

import argparse
import ast
import contextlib
import difflib
import io
import os
import re
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from docs.site.typed import add_output
from npformer.core import BackendUnavailableError, get_backend

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

BLOCK = re.compile(
    r"(?P<source><!-- source: (?P<file>\S+) (?P<names>[^>]+?) -->\n+)?"
    r"^```python(?P<info> needs=(?P<needs>\S+))?\n"
    r"(?P<code>.*?)^```$(?:\n+```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


def pages() -> list[Path]:
    """Return the pages whose Python blocks are run."""
    written_with_site = DOCS / "line_by_line"  # with the site
    return sorted(p for p in DOCS.rglob("*.md") if p.parent != written_with_site)


def rewritten(text: str, page: str) -> str:
    """Return a page's text with the current output of its blocks, and the current sources."""
    namespace = {"__name__": "__main__"}
    texts, end = [], 0
    with _place_of_its_own(), np.printoptions():  # a page may set its own
        for block in BLOCK.finditer(text):
            texts.append(text[end : block.start()])
            end = block.end()
            if block["source"]:
                code = source(block["file"], block["names"].split())
                texts.append(f"{block['source']}```python\n{code}```")
                continue
            if lacks(block):
                texts.append(block[0])
                continue
            line = text.count(
                "\n", 0, block.start("code")
            )  # so that an error names the page's line
            printed = _run("\n" * line + block["code"], page, namespace)
            texts.append(f"```python{block['info'] or ''}\n{block['code']}```")
            if printed:
                texts.append(f"\n\n```text\n{printed.rstrip()}\n```")
    return "".join([*texts, text[end:]])


def lacks(block: re.Match[str]) -> list[str]:
    """Return what a block needs that is not here: a package, a GPU, or a folder of weights."""
    return [name for name in (block["needs"] or "").split(",") if name and not _is_here(name)]


def _is_here(name: str) -> bool:
    if find_spec(name) is None:
        return False
    try:
        return name != "cupy" or get_backend(name) is not None
    except BackendUnavailableError:
        return False


def source(file: str, names: list[str]) -> str:
    """Return functions, classes or methods of a file as they are there, without docstrings."""
    text = (ROOT / file).read_text("utf-8")
    code = "\n\n".join(_definition(text, name, file) for name in names)
    return f"{imports_of(text, file, code)}{code}"


def names_in(code: str) -> set[str]:
    """Return the names that code uses."""
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


def imports_of(text: str, file: str, code: str) -> str:
    """Return the imports that some code of a file needs, and an empty line below them."""
    names_needed = names_in(code) - {getattr(node, "name", None) for node in ast.parse(code).body}
    module = file.removesuffix(".py").replace("/", ".")
    plain, names_by_module = [], {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported = [
                ast.unparse(alias)
                for alias in node.names
                if (alias.asname or alias.name) in names_needed
            ]
        if isinstance(node, ast.Import):
            plain += imported
        elif isinstance(node, ast.ImportFrom):
            names_by_module.setdefault(node.module or "", []).extend(imported)
        else:
            targets = getattr(node, "targets", [getattr(node, "target", node)])
            defined = [getattr(alias, "id", getattr(alias, "name", "")) for alias in targets]
            names_by_module.setdefault(module, []).extend(
                alias for alias in defined if alias in names_needed
            )
    names_by_module[module] = names_by_module.pop(module, [])  # last: the others first, as usual
    lines = [f"import {name}\n" for name in plain]
    lines += [
        f"from {where} import {', '.join(names)}\n"
        for where, names in names_by_module.items()
        if names
    ]
    return "".join([*lines, "\n" * bool(lines)])


def _definition(text: str, name: str, file: str) -> str:
    body = ast.parse(text).body
    node: ast.AST | None = None
    for inner_name in name.split("."):
        node = next((each for each in body if getattr(each, "name", None) == inner_name), None)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise ValueError(
                f"{file} defines no {name}; expected a function, a class or Class.method"
            )
        body = node.body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    lines = text.splitlines(keepends=True)
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    docstring_lines = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(each) is not None:
            doc = each.body[0]
            docstring_lines |= set(range(doc.lineno, (doc.end_lineno or doc.lineno) + 1))
            # the empty line between a class's docstring and its first method
            if len(each.body) > 1 and not lines[doc.end_lineno or doc.lineno].strip():
                docstring_lines.add((doc.end_lineno or doc.lineno) + 1)
    source_lines = [
        lines[n - 1]
        for n in range(first, (node.end_lineno or first) + 1)
        if n not in docstring_lines
    ]
    indent = len(source_lines[0]) - len(source_lines[0].lstrip())
    return "".join(line[indent:] if line.strip() else line for line in source_lines)


def _run(code: str, page: str, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    # progress bars go to stderr
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(code, page, "exec"), namespace)
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines())


@contextlib.contextmanager
def _place_of_its_own():
    """Run in an empty folder, which is removed afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(before)


def difference(page: Path) -> str:
    """Return how a page differs from what would be written; "" if it does not.

    Numbers may differ by one in the last printed digit, and rounding errors by any amount,
    because machines round differently.
    """
    name = page.relative_to(ROOT).as_posix()
    before = page.read_text("utf-8")
    after = add_output(rewritten(before, name))
    if same(before, after):
        return ""
    return "".join(
        difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            fromfile=name,
            tofile="as it runs",
        )
    )


NUMBER = re.compile(r"\s*(-?(?:\d+(?:\.\d*)?e[-+]?\d+|\d+\.\d*))")
TABLE = re.compile(r"^( +tensor +shape +checked) +error .*\n((?: {2}.*\n?)*)", re.MULTILINE)
"""A report of gradcheck: which entry has the largest error is a matter of rounding."""
NOTHING = 1e-9
"""A number with an exponent below this is a rounding error, which differs between machines."""


def same(one: str, other: str) -> bool:
    """Return whether two texts are equal, except for the last digits of decimal numbers."""
    ones, others = (NUMBER.split(TABLE.sub(_without_errors, text)) for text in (one, other))
    return len(ones) == len(others) and all(
        a == b or (k % 2 == 1 and _near(a, b))
        for k, (a, b) in enumerate(zip(ones, others, strict=True))
    )


def _without_errors(table: re.Match[str]) -> str:
    width = len(table[1])
    rows = [row for row in table[2].splitlines() if not row.startswith("  twin in")]
    return "\n".join(line[:width].rstrip() for line in [table[1], *rows])


def _near(one: str, other: str) -> bool:
    a, b = float(one), float(other)
    if "e" in one and "e" in other and max(abs(a), abs(b)) < NOTHING:
        return True
    # The smaller one: a number with fewer digits was printed differently, not rounded differently.
    return abs(a - b) <= 1.01 * min(_last(one), _last(other))


def _last(number: str) -> float:
    """Return what one in the last digit of a printed number is worth."""
    digits, _, power = number.partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def main(words: list[str]) -> int:
    """Write or check the named pages, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m docs.site.pages", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="all, if none is named")
    parser.add_argument("--check", action="store_true", help="write nothing, show what differs")
    options = parser.parse_args(words)
    status = 0
    for page in [path.resolve() for path in options.pages] or pages():
        if options.check:
            changes = difference(page)
            print(changes, end="")
            status |= bool(changes)
        else:
            text = page.read_text("utf-8")
            text = rewritten(text, page.relative_to(ROOT).as_posix())
            page.write_text(add_output(text), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
