"""The statements of a function, each with its comments beside it: the rows of a page."""

import ast
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from docs.site.traces import definition

ALIKE = {
    r"(\w+ = )?checks\.gradient": "The gradient has the shape of the result.",
    r"(\w+ = )?(checks\.|_?check_)": "A mismatch raises an error that names it.",
    r"raise ": "The error says what came, and what to do.",
    r"\w+ = array_module": "NumPy, or CuPy for arrays on a GPU.",
    r".* = cache$": "What the forward pass kept.",
    r"return .*, \(.*\)$": "The result, and what the backward pass needs.",
}
"""Beginnings of lines that are alike in all pairs, and what is said of them where no comment is."""


class Row(NamedTuple):
    """A statement, or the head of one that holds others; lines by their numbers in the file."""

    first: int
    last: int
    comments: str  # a paragraph a line: those above, and that beside
    code: str


def statements(code: CodeType) -> Iterator[Row]:
    """Yield the rows of a function."""
    lines, first, body = definition(code)
    begin = body.body[1:] if ast.get_docstring(body) else body.body
    ends = {}
    for statement in _leaves(begin):
        last = statement.body[0].lineno - 1 if hasattr(statement, "body") else statement.end_lineno
        while lines[last - 1].strip()[:1] in ("", "#"):  # comments above the first line within
            last -= 1
        ends[statement.lineno] = last
    k, above = begin[0].lineno, ""
    while k <= len(lines):
        last = ends.get(k, k)
        source = "".join(lines[k - 1 : last])
        before, beside = (
            " ".join(re.findall(rf"{where}#\s(.*)$", source, re.MULTILINE))
            for where in (r"^\s*", r"\S\s\s")
        )
        text = re.sub(r"(^\s*|\s\s)#\s.*$", "", source, flags=re.MULTILINE).rstrip()
        above = f"{above} {before}".strip()
        if text.strip():  # else it is a comment of the line below
            comments = f"{above}\n{beside}".strip()
            text = re.sub("^ {4}", "", text, flags=re.MULTILINE)
            yield Row(first + k - 1, first + last - 1, comments, text)
            above = ""
        k = last + 1


def _leaves(body: list[ast.stmt]) -> Iterator[Any]:
    for statement in body:
        yield statement
        for block in ("body", "orelse"):
            yield from _leaves(getattr(statement, block, []))


def said_of(code: str) -> str:
    """Return what is said of a line that is alike in all pairs."""
    return next((words for line, words in ALIKE.items() if re.match(line, code.strip())), "")
