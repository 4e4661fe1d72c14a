"""Texts with labels in fastText's format: `__label__spam free money now` on a line.

A label is a word that begins with `__label__`; the other words are the text
(https://fasttext.cc/docs/en/supervised-tutorial.html).
"""

from __future__ import annotations

import re

MARK = "__label__"
"""What each label begins with."""

LABEL = re.compile(rf"(?<!\S){MARK}(\S+)\s*")
"""A label, and the spaces after it."""

SEPARATOR = ";"
"""What stands between several labels of a text in the table."""


def has_fasttext_labels(text: str) -> bool:
    """Return whether the first words of a file are one of fastText's labels."""
    return bool(LABEL.match(text.lstrip()))


def read_fasttext_table(text: str) -> tuple[dict[str, list[str]], list[int]]:
    """Return the columns "label" and "text", and the line of each row.

    Empty lines are left out. Several labels of a line become one string, "a;b"; a line without a
    label has the label "".
    """
    labels, texts, lines = [], [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            labels.append(SEPARATOR.join(LABEL.findall(line)))
            texts.append(LABEL.sub("", line).strip())
            lines.append(number)
    return {"label": labels, "text": texts}, lines
