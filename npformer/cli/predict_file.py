"""npformer predict for a classifier of texts or series: from the command line, or from a file."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

from npformer.cli import common
from npformer.cli.file_results import part_of, shown
from npformer.cli.recipes.file_task import FileTask, Part
from npformer.data.tables import SUFFIXES, kind_of, read_table
from npformer.tasks.estimators import Classifier, TextClassifier
from npformer.training.storage.files import write_whole

PREDICTED, PROBABILITY = "predicted", "probability"


def run(options: argparse.Namespace, classifier: Classifier, task: FileTask | None) -> int:
    """Print or write what the classifier predicts; `task` is that of the training."""
    with_texts = isinstance(classifier, TextClassifier)
    kind = "texts" if with_texts else "series"
    if options.mask is not None:
        raise ValueError(f"--mask is given and the model takes {kind}; expected none")
    columns: dict[str, list[Any]] = {}
    if with_texts:
        refuse_files(options.input)
    if options.out is not None and any(is_same(options.out, word) for word in options.input):
        raise ValueError(f"--out {options.out} is the file that is read; expected another name")
    if len(options.input) == 1 and (not with_texts or is_table(options.input[0])):
        part = part_of(options.input[0], options, task, classifier, labelled=False)
        if with_texts:
            columns = read_table(options.input[0], encoding=options.encoding or "utf-8").columns
    elif options.input and with_texts:
        texts = list(options.input)
        part = Part(texts, [None] * len(texts), [])
    else:
        own = '"a text of your own"' if with_texts else "FILE"
        raise ValueError(
            f"there is nothing to predict; expected {'texts in quotes, or ' * with_texts}one file: "
            f"npformer predict {options.model} {own}"
        )
    if with_texts and (empty := sum(not text.strip() for text in part.samples)):
        if empty == len(part):
            raise ValueError(
                f"{'all texts are' if empty > 1 else 'the text is'} empty; expected words"
            )
        print(f"{empty:,} of {len(part):,} texts are empty: no label", file=sys.stderr)
    if isinstance(classifier, TextClassifier):
        unknown = [i for i in classifier.unknown(part.samples) if part.samples[i].strip()]
        if unknown:
            print(
                f"{len(unknown):,} of {len(part):,} texts have no word that the model knows, the "
                f"first is {shown(part, unknown[0])!r}: their label is a guess",
                file=sys.stderr,
            )
    found = classifier.predict_probabilities(
        part.samples, options.batch_size, communicator=options.ranks
    )
    if options.ranks.rank:
        return 0  # the first writes and prints
    known = [not isinstance(each, str) or bool(each.strip()) for each in part.samples]
    labels = classifier.names.labels(found.argmax(axis=1)).tolist()
    predicted = [label if words else "" for label, words in zip(labels, known, strict=True)]
    print(f"{common.counted(len(part), kind)} on {common.device_of(options)}", file=sys.stderr)
    if options.out is not None:
        columns = columns or ({"text": part.samples} if with_texts else {"id": part.ids})
        write_whole(options.out, _table(options, classifier, columns, found, predicted))
        print(f"{options.out}: {len(part):,} rows")
        return 0
    if options.probabilities:
        print("  ".join(f"{name:>10}" for name in classifier.names.words()))
    for i, (label, row) in enumerate(zip(predicted, found, strict=True)):
        if options.probabilities:
            print("  ".join(f"{p:>10.4f}" for p in row) + f"  {shown(part, i)}")
        else:
            print(f"{label}  {row.max():.4f}  {shown(part, i)}")
    return 0


FILES = {".txt", ".json", ".xlsx", ".xls", ".ods", ".doc", ".docx", ".odt", ".pdf", ".html", ".xml"}
"""Endings of the names of files that no command reads."""


def refuse_files(words: list[str]) -> None:
    """Raise ValueError for file names where texts or a table are expected."""
    for word in words:
        if word == "-" or any(c.isspace() for c in word) or not word:
            continue
        if kind_of(Path(word)) is not None:
            if len(words) > 1:
                raise ValueError(
                    f"{word} is a table, and there is more; expected one table, or texts, not both"
                )
        elif Path(word).suffix.lower() in FILES or _exists(word):
            raise ValueError(
                f"{word} is the name of a file or folder, not a table; expected texts in quotes, "
                f"or one of {', '.join(SUFFIXES)}. In Excel: save as CSV UTF-8. If the word itself "
                "is the text, put it into a table"
            )


def is_same(path: Path, word: str) -> bool:
    """Return whether a word names the file at a path."""
    return path.exists() and _exists(word) and path.samefile(word)


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # a long text, or a character that no name has
        return False


def is_table(word: str) -> bool:
    """Return whether a word names a table; a text that merely ends like one does not."""
    if word == "-":
        return True
    if kind_of(Path(word)) is None or any(c.isspace() for c in word):
        return False
    if not Path(word).is_file():
        raise FileNotFoundError(f"there is no file {word}")
    return True


def _table(
    options: argparse.Namespace,
    classifier: Classifier,
    columns: dict[str, list[Any]],
    found: np.ndarray,
    predicted: list[Any],
) -> bytes:
    """Return the rows that were read, with what was predicted, as CSV."""
    new: dict[str, list[Any]] = {PREDICTED: predicted}
    new[PROBABILITY] = [f"{p:.6f}" for p in found.max(axis=1)]
    if options.probabilities:
        for i, name in enumerate(classifier.names.words()):
            new[f"p({name})"] = [f"{p:.6f}" for p in found[:, i]]
    return table_of(options, columns, new)


def table_of(
    options: argparse.Namespace, columns: dict[str, list[Any]], new: dict[str, list[Any]]
) -> bytes:
    """Return columns that were read and new ones, as CSV or TSV."""
    if twice := [name for name in new if name in columns]:
        raise ValueError(
            f"{options.input[0]} has a column {twice[0]!r}, which would be overwritten; expected "
            "another name. Rename it"
        )
    words = io.StringIO(newline="")
    writer = csv.writer(words, delimiter="\t" if ".tsv" in options.out.suffixes else ",")
    writer.writerow([*columns, *new])
    writer.writerows(zip(*columns.values(), *new.values(), strict=True))
    return words.getvalue().encode()
