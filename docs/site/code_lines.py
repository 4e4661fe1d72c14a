"""Lines of code that fit every screen, and checks of arguments folded within them.

A line that is too long goes on below, a little to the right of where it began. What is aligned in
columns, such as a matrix, cannot be broken: it scrolls, and `npformer.css` shows that it does.
"""

import ast
import re
from html import escape, unescape
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
PRINTED = ("text", "none", "default")
"""Languages of blocks that hold what a program printed."""


def fitted(body: str) -> str:
    """Return the HTML of a page with blocks of code that no screen cuts."""
    return BLOCK.sub(_fitted_block, body)


def _fitted_block(block: re.Match[str]) -> str:
    html = block["code"].removesuffix("\n")
    text = text_of(html)
    if block["language"] in PRINTED and COLUMNS.search(text):
        label = "tabindex='0' role='region' aria-label='printed in columns'"
        return f"{block['head']}<pre class='scrolls' {label}>{html}\n</pre>"
    checks = checks_in(text) if block["language"] == "python" else []
    return f"{block['head']}<pre>{hanging(html, checks)}</pre>"


def text_of(html: str) -> str:
    """Return the text of a piece of HTML."""
    return unescape(re.sub("<[^>]+>", "", html))


def checks_in(code: str) -> list[Fold]:
    """Return the checks of arguments in the functions of a block; none if it cannot be parsed."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return sorted(fold for function in functions for fold in folds(function))


def hanging(html: str, checks: list[Fold] | None = None) -> str:
    """Return lines of HTML that break below their own beginning, with the checks folded."""
    spans = []
    first_lines = {fold.first: fold for fold in checks or []}
    last_lines = {fold.last for fold in checks or []}
    for number, line in enumerate(html.split("\n"), start=1):
        text = text_of(line)
        indent = len(text) - len(text.lstrip(" "))
        style = f"style='--indent:{indent}'"
        if number in first_lines:
            words = summary_of_checks(first_lines[number].words)
            spans.append(f"<details class='fold'><summary {style}>{words}</summary>")
        spans.append(f"<span class='code-line' {style}>{line}\n</span>")
        if number in last_lines:
            spans.append("</details>")
    return "".join(spans)


def summary_of_checks(words: str) -> str:
    """Return what stands above folded checks."""
    if words == SAID_OF_MODULE:
        return f"Finds {words}"
    return f"Checks: {escape(words)}"


def fit(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Fit the blocks of a page as it is written."""
    if "body" in context and not page.startswith("_modules/"):
        context["body"] = fitted(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is written."""
    app.connect("html-page-context", fit)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
