"""Tables as people really have them, rebuilt by hand with drawn details.

Each is read as `npformer train` reads it. It gives the texts and labels that were written into it,
or is refused in words; other texts, other labels or an error of Python's own are faults.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npformer.tasks.sources.choose_task import choose_task
from tests.faults.wrong_calls import is_deliberate

MESSAGES = (
    "Go until jurong point, crazy.. Available only in bugis n great world",
    "Ok lar... Joking wif u oni...",
    'He said "see you at 5" and left',
    "Free entry in 2 a wkly comp; text FA to 87121",
    "Grüße aus Köln, bis später … Jörg",
    "two lines\nin one field",
    "NA",
    "price: 5 €, 50 % off | today only",
    "a back\\slash and a tab\there",
    "0.5",
    "'single' quotes, #hash and //comment",
    "=SUM(A1:A2)",
)
"""Texts with what breaks a table: marks between fields, quotes, line ends, missing values."""


@dataclass
class RealFile:
    """The bytes of a file, how it is asked for, and what must come of it."""

    name: str
    content: bytes
    samples: list[Any]
    labels: list[str]
    options: dict[str, Any] = field(default_factory=dict)

    def problem(self, folder: Path) -> tuple[str, str]:
        """Read the file; return "right", "words", "silent" or "raw", and what was wrong."""
        path = folder / self.name
        path.write_bytes(self.content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dataset = choose_task(str(path), self.options).read(str(path))
        except Exception as error:
            if is_deliberate(error):
                return "words", str(error)
            return "raw", repr(error)
        if not _equal_samples(dataset.samples, self.samples):
            return "silent", f"samples {dataset.samples!r:.200}; expected {self.samples!r:.200}"
        if not _equal_labels(dataset.labels, self.labels):
            return "silent", f"labels {dataset.labels!r:.200}; expected {self.labels!r:.200}"
        return "right", ""


def _equal_samples(samples: Any, expected: list[Any]) -> bool:
    if len(samples) != len(expected):
        return False
    if isinstance(expected[0], str):
        return list(samples) == expected
    return all(
        np.allclose(np.ravel(series), values, equal_nan=True)
        for series, values in zip(samples, expected, strict=True)
    )


def _equal_labels(labels: Any, expected: list[str]) -> bool:
    """Whether labels are equal; 1 and 1.0 are."""
    return labels is not None and [_plain(label) for label in labels] == [
        _plain(label) for label in expected
    ]


def _plain(label: Any) -> Any:
    try:
        return float(label)
    except ValueError:
        return str(label)


# Tables of texts ----------------------------------------------------------------------------------
def _texts_and_labels(rng: np.random.Generator, n: int = 24) -> tuple[list[str], list[str]]:
    kinds = [("ham", "spam"), ("0", "1"), ("negative", "positive"), ("1", "2", "3", "4", "5")]
    names = kinds[rng.integers(len(kinds))]
    texts = [f"{MESSAGES[i % len(MESSAGES)]} ({i})" for i in rng.permutation(n)]
    return texts, [names[i % len(names)] for i in range(n)]


def spam(rng: np.random.Generator) -> RealFile:
    """Kaggle's SMS spam: the heading ``v1,v2,,,``, in latin-1, with texts in unnamed columns."""
    texts, labels = _texts_and_labels(rng)
    texts = [text.replace("…", "...").replace("€", "EUR") for text in texts]
    rows: list[list[str]] = [["v1", "v2", "", "", ""]]
    for text, label in zip(texts, labels, strict=True):
        continuation = "continued" if rng.random() < 0.1 else ""
        rows.append([label, text, continuation, "", ""])
    options = {"text": "v2", "label": "v1", "encoding": "latin-1"}
    if rng.random() < 0.3:
        del options["encoding"]
    return RealFile("spam.csv", _csv(rng, rows, ",").encode("latin-1"), texts, labels, options)


def reviews(rng: np.random.Generator) -> RealFile:
    """A table as pandas, Excel or a database writes it."""
    texts, labels = _texts_and_labels(rng)
    headings = [("text", "label"), ("review", "sentiment"), ("Message", "Category"), ("x", "y")]
    text, label = headings[rng.integers(len(headings))]
    rows = [[text, label], *([*row] for row in zip(texts, labels, strict=True))]
    if rng.random() < 0.4:  # the index that pandas writes
        rows = [["" if i == 0 else str(i - 1), *row] for i, row in enumerate(rows)]
    if rng.random() < 0.3:  # a mark at the end of each row
        rows = [[*row, ""] for row in rows]
    if rng.random() < 0.3:  # a column that nobody asks for
        rows = [["rating" if i == 0 else str(i % 7), *row] for i, row in enumerate(rows)]
    delimiter = ",;\t|"[rng.integers(4)]
    encoding = ["utf-8", "utf-8-sig", "utf-16", "cp1252"][rng.integers(4)]
    options = {"text": text, "label": label}
    if encoding == "cp1252":
        options["encoding"] = encoding
    content = _csv(rng, rows, delimiter).encode(encoding)
    name = "reviews.tsv" if delimiter == "\t" else "reviews.csv"
    if rng.random() < 0.2:
        return RealFile(f"{name}.gz", gzip.compress(content), texts, labels, options)
    return RealFile(name, content, texts, labels, options)


def backslashes(rng: np.random.Generator) -> RealFile:
    """Quotes escaped by a backslash, as MySQL and Spark write them."""
    texts, labels = _texts_and_labels(rng)
    lines = ["text,label"]
    for text, label in zip(texts, labels, strict=True):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'"{escaped}",{label}')
    options = {"text": "text", "label": "label"}
    return RealFile("export.csv", "\n".join(lines).encode(), texts, labels, options)


def objects(rng: np.random.Generator) -> RealFile:
    """JSON by lines, by rows, or by columns as pandas writes it."""
    texts, labels = _texts_and_labels(rng)
    table = {"text": texts, "label": labels}
    rows = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
    by_index = {
        name: {str(i): value for i, value in enumerate(column)} for name, column in table.items()
    }
    forms = {
        "rows.jsonl": "\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        "list.json": json.dumps(rows),
        "columns.json": json.dumps(table),
        "index.json": json.dumps(by_index),
    }
    name = str(rng.choice(list(forms)))
    return RealFile(name, forms[name].encode(), texts, labels, {"text": "text", "label": "label"})


def no_heading(rng: np.random.Generator) -> RealFile:
    """Texts and labels without a heading."""
    texts, labels = _texts_and_labels(rng)
    rows = [[label, text] for text, label in zip(texts, labels, strict=True)]
    content = _csv(rng, rows, ",").encode()
    return RealFile("train.csv", content, texts, labels, {"encoding": "utf-8"})


def _csv(rng: np.random.Generator, rows: list[list[str]], delimiter: str) -> str:
    """Return rows as a text, with drawn quoting and line ends."""
    quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
    file = io.StringIO(newline="")
    line_end = "\r\n" if rng.random() < 0.4 else "\n"
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=line_end)
    writer.writerows(rows)
    text = file.getvalue()
    return text.removesuffix(line_end) if rng.random() < 0.3 else text


# Tables of series ---------------------------------------------------------------------------------
def heartbeats(rng: np.random.Generator) -> RealFile:
    """A series in each row and its class at one end, with or without a heading."""
    n = 40
    steps = int(rng.choice([3, 12, 187]))
    classes = rng.integers(0, rng.choice([2, 5]), size=n)
    values = np.round(rng.uniform(size=(n, steps)), 3)
    if rng.random() < 0.5:
        values[:, 0] = np.where(rng.random(n) < 0.6, 1.0, values[:, 0])
    labels = [f"{label}.0" if rng.random() < 0.5 else f"{label}" for label in classes]
    if rng.random() < 0.5:
        labels = [f"{label}.0" for label in classes]
    label_is_last = rng.random() < 0.5
    has_heading = rng.random() < 0.4
    rows = [
        [*map(str, row), label] if label_is_last else [label, *map(str, row)]
        for row, label in zip(values, labels, strict=True)
    ]
    names = [f"t{i}" for i in range(steps)]
    if has_heading:
        rows.insert(0, [*names, "label"] if label_is_last else ["label", *names])
    text = "\n".join(",".join(row) for row in rows)
    options = {"label": "label"} if has_heading and rng.random() < 0.5 else {}
    return RealFile("mitbih_train.csv", text.encode(), list(values), labels, options)


KINDS: tuple[Callable[[np.random.Generator], RealFile], ...] = (
    spam,
    reviews,
    backslashes,
    objects,
    no_heading,
    heartbeats,
)


def real_files(n: int, seed: int) -> dict[str, Any]:
    """Read `n` drawn files; count how each was read."""
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter(tried=n, right=0, words=0, silent=0, raw=0)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(n):
            kind = KINDS[i % len(KINDS)]
            file = kind(rng)
            outcome, words = file.problem(Path(folder))
            counts[outcome] += 1
            if outcome in ("silent", "raw"):
                problems.append(f"seed {seed}, file {i}, {kind.__name__}: {words}")
    return {**counts, "problems": problems}
