"""npformer predict for a classifier of texts: sentences from the command line, or a table."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path

import numpy as np

from npformer.core.files import write_whole
from npformer.data.tables import Table, kind_of, read_table
from npformer.pipelines import TextClassifier
from npformer.tools.cli import common
from npformer.tools.text_task import TEXTS, chosen_column

PREDICTED, PROBABILITY = "predicted", "probability"


def run(options: argparse.Namespace, classifier: TextClassifier, column: str | None) -> int:
    """Print or write what the classifier predicts; `column` is that of the training's texts."""
    if options.mask is not None:
        raise ValueError("--mask is given and the model takes texts; expected none")
    table = None
    if len(options.input) == 1 and _is_table(options.input[0]):
        table = read_table(options.input[0], encoding=options.encoding or "utf-8")
        if options.text is None and column in table.columns:
            chosen = str(column)
        else:
            chosen = chosen_column(table, options.text, TEXTS, "--text COLUMN")
        texts = table.texts(chosen)
    elif options.input:
        texts = list(options.input)
    else:
        raise ValueError(
            f"there is nothing to predict; expected texts in quotes, or a table: npformer predict "
            f'{options.model} "a text of your own", or npformer predict {options.model} texts.csv'
        )
    if empty := sum(not text.strip() for text in texts):
        print(f"{empty:,} of {len(texts):,} texts are empty", file=sys.stderr)
    found = classifier.predict_probabilities(texts, options.batch_size)
    predicted = classifier.names.labels(found.argmax(axis=1))
    print(f"{len(texts):,} texts on {common.device_of(options)}", file=sys.stderr)
    if options.out is not None:
        write_whole(options.out, _table(options, classifier, table, texts, found, predicted))
        print(f"{options.out}: {len(texts):,} rows")
        return 0
    if options.probabilities:
        print("  ".join(f"{name:>10}" for name in classifier.names.words()))
    for text, label, row in zip(texts, predicted, found, strict=True):
        if options.probabilities:
            print("  ".join(f"{p:>10.4f}" for p in row) + f"  {common.one_line(text, 50)}")
        else:
            print(f"{label}  {row.max():.4f}  {common.one_line(text, 70)}")
    return 0


def _is_table(word: str) -> bool:
    """Return whether a word names a table; a text that ends like one is not taken for it."""
    if word == "-":
        return True
    if kind_of(Path(word)) is None or any(c.isspace() for c in word):
        return False
    if not Path(word).is_file():
        raise FileNotFoundError(f"there is no file {word}")
    return True


def _table(
    options: argparse.Namespace,
    classifier: TextClassifier,
    table: Table | None,
    texts: list[str],
    found: np.ndarray,
    predicted: np.ndarray,
) -> bytes:
    """Return the rows that were read, with what was predicted, as CSV."""
    columns = dict(table.columns) if table is not None else {"text": texts}
    new = {PREDICTED: predicted.tolist(), PROBABILITY: [f"{p:.6f}" for p in found.max(axis=1)]}
    if options.probabilities:
        for i, name in enumerate(classifier.names.words()):
            new[f"p({name})"] = [f"{p:.6f}" for p in found[:, i]]
    if twice := [name for name in new if name in columns]:
        raise ValueError(
            f"{table.path if table else 'the input'} has a column {twice[0]!r}, which would be "
            "overwritten; expected another name. Rename it"
        )
    words = io.StringIO(newline="")
    writer = csv.writer(words, delimiter="\t" if ".tsv" in options.out.suffixes else ",")
    writer.writerow([*columns, *new])
    writer.writerows(zip(*columns.values(), *new.values(), strict=True))
    return words.getvalue().encode()
