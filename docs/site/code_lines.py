"""Lines of code that fit every screen, with imports and checks of arguments folded.

A line that is too long goes on below, a little to the right of where it began. What is aligned in
columns, such as a matrix, cannot be broken: it scrolls, and `npformer.css` shows that it does.
"""

import ast
import re
from html import escape, unescape
from itertools import takewhile
from typing import Any

from sphinx.application import Sphinx

from docs.site.argument_checks import SAID_OF_MODULE, Fold, folds

BLOCK = re.compile(
    r'(?P<head><div class="(?:[^"]* )?highlight-(?P<language>\w+)[^"]*"><div class="highlight">)'
    r"<pre>(?P<code>.*?)</pre>",
    re.DOTALL,
)
COLUMNS = re.compile(r"\S {2,}\S|^ *\[|[│┃|]", re.MULTILINE)
"""What numbers or words below each other look like."""
IMPORTS = "Imports"
PRINTED = ("text", "none", "default")
"""Languages of blocks that hold what a program printed."""


def fit_blocks(body: str) -> str:
    """Return the HTML of a page with blocks of code that no screen cuts."""
    return BLOCK.sub(_fit_block, body)


def _fit_block(block: re.Match[str]) -> str:
    html = block["code"].removesuffix("\n")
    text = text_of(html)
    if block["language"] in PRINTED and COLUMNS.search(text):
        label = "tabindex='0' role='region' aria-label='printed in columns'"
        return f"{block['head']}<pre class='scrolls' {label}>{html}\n</pre>"
    folds_of_block = find_folds(text) if block["language"] == "python" else []
    return f"{block['head']}<pre>{hang(html, folds_of_block)}</pre>"


def text_of(html: str) -> str:
    """Return the text of a piece of HTML."""
    return unescape(re.sub("<[^>]+>", "", html))


def find_folds(code: str) -> list[Fold]:
    """Return what to fold in a block of Python: checks of arguments, and the package's imports.

    Nothing if it cannot be parsed.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    checks = sorted(fold for function in functions for fold in folds(function))
    return [*_imports(tree, has_functions=bool(functions)), *checks]


def _imports(tree: ast.Module, has_functions: bool) -> list[Fold]:
    """Return the imports of code that is quoted from the package, as one fold."""
    imports = list(takewhile(lambda node: isinstance(node, ast.Import | ast.ImportFrom), tree.body))
    modules = [getattr(node, "module", "") or "" for node in imports]
    if not has_functions or not any(module.startswith("npformer.") for module in modules):
        return []
    last = imports[-1].end_lineno
    assert last
    return [Fold(imports[0].lineno, last, IMPORTS)] if len(imports) > 1 else []


def hang(html: str, folds_of_block: list[Fold] | None = None) -> str:
    """Return lines of HTML that break below their own beginning, with some of them folded."""
    spans = []
    first_lines = {fold.first: fold for fold in folds_of_block or []}
    last_lines = {fold.last for fold in folds_of_block or []}
    for number, line in enumerate(html.split("\n"), start=1):
        text = text_of(line)
        indent = len(text) - len(text.lstrip(" "))
        style = f"style='--indent:{indent}'"
        if number in first_lines:
            words = summary_of(first_lines[number].words)
            spans.append(f"<details class='fold'><summary {style}>{words}</summary>")
        spans.append(f"<span class='code-line' {style}>{line}\n</span>")
        if number in last_lines:
            spans.append("</details>")
    return "".join(spans)


def summary_of(words: str) -> str:
    """Return what stands above folded lines."""
    if words == IMPORTS:
        return words
    if words == SAID_OF_MODULE:
        return f"Finds {words}"
    return f"Checks: {escape(words)}"


def fit(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Fit the blocks of a page as it is written."""
    if "body" in context and not page.startswith("_modules/"):
        context["body"] = fit_blocks(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is written."""
    app.connect("html-page-context", fit)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
