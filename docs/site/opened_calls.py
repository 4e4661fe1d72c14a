"""HTML of a watched call: its lines with what they made; checks folded, helpers opened in place."""

import ast
import re
import sys
from collections.abc import Iterator
from html import escape
from itertools import groupby, pairwise
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from docs.site.argument_checks import folds
from docs.site.code_lines import hang, summary_of
from docs.site.formula_text import paragraphs
from docs.site.statements import Row, said_of, statements
from docs.site.traces import Call, are_same, cache_fields, definition, return_value

ROOT = Path(__file__).resolve().parents[2]
ENOUGH_CALLS = 3
"""A line that calls a helper more often than this shows the last of its calls alone."""
LONGEST_NAME = 28
"""Characters of an expression that can stand as the name of a result."""
FITS = 34
"""Characters of a row of numbers that a phone shows without scrolling."""


class Caches:
    """The names of the entries of caches, which are tuples, by what made them."""

    def __init__(self) -> None:
        self._names: dict[int, list[str]] = {}

    def learn(self, call: Call) -> None:
        """Note the caches that a call and its helpers returned."""
        names = _names_in_backward(call.code) or cache_fields(call)
        result = call.result
        if names and isinstance(result, tuple) and isinstance(result[-1], tuple):
            self._names[id(result[-1])] = names
        for calls in call.calls_by_line.values():
            for helper in calls:
                self.learn(helper)

    def names(self, value: Any) -> list[str] | None:
        """Return the names of a cache's entries; None if this is no cache."""
        return self._names.get(id(value))


def _names_in_backward(code: CodeType) -> list[str] | None:
    """Return the names that the backward pass of a function gives to its cache."""
    place = Path(code.co_filename).relative_to(ROOT).with_suffix("")
    module = sys.modules[".".join(place.parts)]
    backward = getattr(module, f"{code.co_name}_backward", None)
    if backward is None:
        return None
    for node in ast.walk(definition(backward.__code__)[2]):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == "cache":
            target = node.targets[0]
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            return [ast.unparse(name) for name in names]
    return None


class Group(NamedTuple):
    """Rows that stand together: open (kind "") or folded (kind "checks" or "not-run")."""

    kind: str
    rows: list[Row]
    words: str = ""


def groups(call: Call) -> Iterator[Group]:
    """Yield the rows of a call in groups: checks, what does not run here, and the rest."""
    rows = list(statements(call.code))
    _, first, tree = definition(call.code)
    checks = {}
    for fold in folds(tree):
        lines_of_file = range(fold.first + first - 1, fold.last + first)
        if fold.first + first - 1 in call.values_by_line:
            checks |= dict.fromkeys(lines_of_file, fold)
    idle = _idle_rows(rows, call)
    begin = 0
    for end in range(1, len(rows) + 1):
        if end < len(rows) and _goes_on(rows[begin], rows[end], checks, idle):
            continue
        yield _group_of(rows[begin:end], checks, idle)
        begin = end


def _goes_on(first: Row, following: Row, checks: dict[int, Any], idle: set[Row]) -> bool:
    """Return whether a row stands in the same group as those from `first` to above it."""
    one, other = checks.get(first.first), checks.get(following.first)
    if one or other:
        return one is other
    if first in idle and following in idle:
        return not _begins_branch(following) or _indent(following) > _indent(first)
    return first not in idle and following not in idle


def _group_of(rows: list[Row], checks: dict[int, Any], idle: set[Row]) -> Group:
    fold = checks.get(rows[0].first)
    if fold:
        return Group("checks", rows, fold.words)
    return Group("not-run" if rows[0] in idle else "", rows)


def _idle_rows(rows: list[Row], call: Call) -> set[Row]:
    """Return rows that do not run in this call, and the condition that leads past them."""
    idle = {row for row in rows if not _lines_that_ran(row, call)}
    for row, following in pairwise(rows):
        if row.code.lstrip() == "else:" and following not in idle:
            idle.discard(row)
        is_inside = following in idle and _indent(following) > _indent(row)
        if _begins_branch(row) and is_inside:
            idle.add(row)
    return idle


def _begins_branch(row: Row) -> bool:
    return row.code.lstrip().startswith("if ")


def _indent(row: Row) -> int:
    return len(row.code) - len(row.code.lstrip())


def _lines_that_ran(row: Row, call: Call) -> list[int]:
    return [line for line in call.values_by_line if row.first <= line <= row.last]


def lines(call: Call, caches: Caches) -> str:
    """Return the HTML of a call's lines."""
    names_shown = dict(call.arguments)
    html = [_group(group, call, caches, names_shown) for group in groups(call)]
    return f"<div class='line-by-line'>{''.join(html)}</div>"


def _group(group: Group, call: Call, caches: Caches, names_shown: dict[str, Any]) -> str:
    if group.kind == "":
        return "".join(_row(row, call, caches, names_shown) for row in group.rows)
    inner = "".join(_plain_row(row) for row in group.rows)
    summary = summary_of(group.words)
    if group.kind == "not-run":
        head, *_ = group.rows[0].code.strip().splitlines()
        more = " …" if len(group.rows) > 1 else ""
        summary = f"Not in this example: <code>{escape(head)}{more}</code>"
    return f"<details class='fold {group.kind}'><summary>{summary}</summary>{inner}</details>"


def _plain_row(row: Row) -> str:
    return f"<div class='line'>{_words(row)}<div>{_code(row)}</div></div>"


def _code(row: Row) -> str:
    return f"<pre class='code'>{hang(escape(row.code))}</pre>"


def _words(row: Row) -> str:
    sentences = (row.comments or said_of(row.code)).splitlines()
    return f"<div class='words'>{''.join(f'<p>{escape(s)}</p>' for s in sentences)}</div>"


def _row(row: Row, call: Call, caches: Caches, names_shown: dict[str, Any]) -> str:
    ran = _lines_that_ran(row, call)
    values = {name: v for line in ran for name, v in call.values_by_line[line].items()}
    texts = [text for name, v in values.items() for text in numbers(name, v, caches)]
    if re.search(r"\bempty(_like)?\(", row.code):  # what is there is left from before
        texts = [f"{text.partition(chr(10))[0]}, filled below" for text in texts]
    names_shown |= values
    if row.first <= call.last_line <= row.last:
        texts += _unseen_results(call, caches, names_shown)
    shown = "".join(map(numbers_block, join_lines(texts)))
    helpers = [helper for line in ran for helper in call.calls_by_line.get(line, [])]
    return (
        f"<div class='line'>{_words(row)}<div>{_code(row)}{shown}</div>"
        f"{_open_helpers(helpers, caches, names_shown)}</div>"
    )


def join_lines(texts: list[str]) -> Iterator[str]:
    """Yield texts; neighbours of one line each stand together."""
    for has_rows, group in groupby(texts, key=lambda text: "\n" in text):
        if has_rows:
            yield from group
        else:
            yield "\n".join(group)


def numbers_block(text: str) -> str:
    """Return a name with its numbers; rows too long for a phone can be scrolled by keyboard."""
    name, _, rows = text.partition("\n")
    if not rows.startswith(("[", " ")):
        return f"<pre class='numbers'>{hang(escape(text))}</pre>"
    label = escape(name, quote=True)
    is_wide = max(map(len, text.splitlines())) > FITS
    scrolls = f" tabindex='0' role='region' aria-label='{label}'" if is_wide else ""
    return f"<pre class='numbers scrolls'{scrolls}>{escape(text)}</pre>"


def _unseen_results(call: Call, caches: Caches, names_shown: dict[str, Any]) -> Iterator[str]:
    """Yield what a call returned and no line has shown yet."""
    for name, value in _results(call):
        entries = caches.names(value)
        if entries:
            yield f"cache: {', '.join(entries)}"
        elif name not in names_shown or not are_same(value, names_shown[name]):
            yield from numbers(name, value, caches)


def _results(call: Call) -> Iterator[tuple[str, Any]]:
    """Yield each result of a call, with its code as its name if that is short."""
    expression, result = return_value(call), call.result
    values = result if isinstance(expression, ast.Tuple) else (result,)
    codes = expression.elts if isinstance(expression, ast.Tuple) else [expression]
    texts = [ast.unparse(code) for code in codes if code is not None]
    if len(texts) != len(values):
        texts = ["" for _ in values]
    names = _names_in_comment(call)
    for number, (text, value) in enumerate(zip(texts, values, strict=True)):
        if text.isidentifier():
            yield text, value
        elif len(names) == len(values):
            yield names[number], value
        elif 0 < len(text) <= LONGEST_NAME:
            yield text, value
        else:
            yield "result" if len(values) == 1 else f"result {number + 1}", value


def _names_in_comment(call: Call) -> list[str]:
    """Return the names of results in the comment beside a return statement: ``# dS, dV``."""
    for row in statements(call.code):
        if row.first <= call.last_line <= row.last:
            words, *_ = re.split(": |\n", row.comments)
            names = words.split(", ")
            return names if all(name.isidentifier() for name in names) else []
    return []


def _open_helpers(helpers: list[Call], caches: Caches, names_shown: dict[str, Any]) -> str:
    """Return the helpers that a line calls, each folded below its formula."""
    helpers = [call for call in helpers if not call.code.co_name.lstrip("_").startswith("check_")]
    if len(helpers) <= ENOUGH_CALLS:
        return "".join(_helper(helper, caches, names_shown) for helper in helpers)
    note = f" (the last of {len(helpers)} calls)"
    return _helper(helpers[-1], caches, names_shown, note)


def _helper(call: Call, caches: Caches, names_shown: dict[str, Any], note: str = "") -> str:
    first, *more = paragraphs(ast.get_docstring(definition(call.code)[2]) or "")
    if any(are_same(call.result, value) for value in call.arguments.values()):
        note = f"{note}, which changes nothing here"
    new_arguments = [
        text
        for name, value in call.arguments.items()
        if not any(are_same(value, known) for known in names_shown.values())
        for text in numbers(name, value, caches)
    ]
    return (
        f"<details class='helper'><summary><code>{escape(call.code.co_name)}</code>{note}: "
        f"<span class='formula-text'>{first}</span></summary>{''.join(more)}"
        f"{''.join(map(numbers_block, join_lines(new_arguments)))}{lines(call, caches)}</details>"
    )


def numbers(name: str, value: Any, caches: Caches) -> Iterator[str]:
    """Yield a name with the numbers of a value; of a tuple, each entry's."""
    entries = caches.names(value)
    if entries:
        yield f"{name}: {', '.join(entries)}"
    elif isinstance(value, np.ndarray | np.floating | float):
        shape = f" {value.shape}" if np.ndim(value) else ""
        text = np.array2string(np.asarray(value), precision=4, suppress_small=True, threshold=40)
        yield f"{name}{shape}\n{text}" if shape else f"{name} = {text}"
    elif value is None or isinstance(value, bool | int | str) or is_plain(value):
        yield f"{name} = {value}"
    elif isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        places = [f".{n}" for n in names] if names else [f"[{i}]" for i in range(len(value))]
        for place, entry in zip(places, value, strict=True):
            if not isinstance(entry, tuple | list) or is_plain(entry):
                yield from numbers(f"{name}{place}", entry, caches)
            else:
                yield f"{name}{place}: {len(entry)} entries"


def is_plain(value: Any) -> bool:
    """Return whether a value is a tuple of numbers, words and such tuples, as shapes are."""
    return isinstance(value, tuple) and all(
        entry is None or isinstance(entry, bool | int | float | str) or is_plain(entry)
        for entry in value
    )
