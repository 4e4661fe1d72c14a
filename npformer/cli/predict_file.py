"""npformer predict for a model of a file: labels, or translations, of words or of another file."""

from __future__ import annotations

import argparse
import csv
import io
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npformer.cli import common
from npformer.cli.trained import Trained, refuse_options_of_tables
from npformer.core import a_type
from npformer.core.support.tables import align_columns
from npformer.data.tables import SUFFIXES, is_fasttext_file, table_format
from npformer.tasks.estimators import Classifier, TextClassifier, TextFiller, TextTranslator
from npformer.tasks.estimators.filling import fill
from npformer.tasks.sources.file_kinds import is_text_file
from npformer.tasks.sources.file_task import Part
from npformer.training.storage.outputs import is_stream, write_output

NAMED = {"pairs": "sources", "unlabelled": "texts"}
"""What is predicted for, by the kind of file, where it is called otherwise."""

Columns = Mapping[str, Sequence[Any]]
Filling = list[list[tuple[str, float]]]  # by gap, words and probabilities, the likeliest first
PREDICTED, PROBABILITY = "predicted", "probability"

MOST_SHOWN = 1000
"""Characters of an answer on one line."""

LONGEST_NAME = 255
"""Characters of the name of a file; of longer words the system may not even answer."""

FILES = {".txt", ".xlsx", ".xls", ".ods", ".doc", ".docx", ".odt", ".pdf", ".html", ".xml"}
"""Endings of the names of files that no command reads."""


def run(options: argparse.Namespace, trained: Trained) -> int:
    """Print or write what the model predicts."""
    model, kind = trained.model, NAMED.get(trained.kind, trained.kind)
    samples = _input(options, trained, kind)
    if options.explain:
        return explain(options, model, samples.samples)
    if options.out is not None:
        _check_new_columns(options, model, samples)
    fillings: list[Filling] | None = None
    if isinstance(model, TextFiller):
        fillings = _fillings(options, model, samples)
        new = _columns_of(fillings)
    elif kind == "sources":
        new = _translations(options, model, samples)
    else:
        new = _labels(options, model, samples)
    if options.ranks.rank:
        return 0  # the first writes and prints
    print(f"{common.counted(len(samples), kind)} on {common.device_of(options)}", file=sys.stderr)
    if options.out is not None:
        table = _table(options, samples.columns, new)
        write_output(options.out, table, overwrite=options.overwrite)
        if not is_stream(options.out):  # it may be standard output, which is for the table
            print(f"{options.out}: {common.counted(len(samples), 'rows')}")
    elif fillings is not None:
        print("\n".join(_lines_of_gaps(samples, fillings)))
    elif kind == "sources" and len(samples) == 1:
        print(*new[PREDICTED])
    else:
        print("\n".join(_lines(options, samples, new, source_first=kind == "sources")))
    return 0


def explain(options: argparse.Namespace, model: Any, texts: Sequence[str]) -> int:
    """Print which words of each text spoke for its label, and which against it."""
    if not isinstance(model, TextClassifier):
        raise ValueError(
            f"{options.model} holds {a_type(model)}; expected a model that gives texts a label, "
            "whose words speak for it or against it"
        )
    if options.out is not None:
        raise ValueError("--out is given and an explanation is printed; expected none")
    explanations = [str(model.explain(text)) for text in texts]
    if not options.ranks.rank:
        print("\n\n".join(explanations))
    return 0


def _lines(
    options: argparse.Namespace, part: Part, new: Columns, *, source_first: bool
) -> list[str]:
    """Return a line for each sample: the new columns and the sample in brief."""
    samples = [describe_sample(part, i) for i in range(len(part))]
    rows = [*zip(*new.values(), samples, strict=True)]
    if source_first:
        rows = [row[::-1] for row in rows]  # a source, and what it becomes
    if options.probabilities:
        rows.insert(0, (*new, ""))
    cells = [[common.one_line(str(cell), MOST_SHOWN) for cell in row] for row in rows]
    return align_columns(cells, "<" + ">" * (len(new) - 1) + "<")


def _input(options: argparse.Namespace, trained: Trained, kind: str) -> Part:
    """Return what to predict."""
    words = options.input
    for name in ("mask", "text", "probabilities") if kind == "sources" else ("mask",):
        if getattr(options, name):
            raise ValueError(f"--{name} is given and the model takes {kind}; expected none")
    file = _file_to_predict(words) if kind == "series" else table_in(words)
    if file is not None:
        return trained.read(file, options, labelled=False)
    refuse_options_of_tables(options, "there is no table, for which it is")
    if words and kind != "series":
        return Part(list(words), columns={kind.removesuffix("s"): words})
    example = {"sources": '"a source"', "series": "FILE"}.get(kind, '"a text of your own"')
    expected = "one file" if kind == "series" else "texts in quotes, or one table"
    what = "more than one file" if words else "nothing"
    raise ValueError(
        f"there is {what} to predict; expected {expected}: npformer predict "
        f"{options.model} {example}"
    )


def _file_to_predict(words: list[str]) -> str | None:
    """Return the file of series that words name; None if they do not name one."""
    return words[0] if len(words) == 1 else None


def _check_new_columns(options: argparse.Namespace, model: Any, part: Part) -> None:
    """Check that no column that was read has the name of one that is written beside it."""
    names = [PREDICTED] if isinstance(model, TextTranslator) else [PREDICTED, PROBABILITY]
    if options.probabilities and isinstance(model, Classifier):
        names += [_name_of_probability(label) for label in model.classes_]
    if twice := [name for name in names if name in part.columns]:
        raise ValueError(
            f"{options.input[0]} has a column {twice[0]!r}, which would be overwritten; expected "
            "another name. Rename it"
        )


def _name_of_probability(label: Any) -> str:
    return f"p({label})"


def _translations(options: argparse.Namespace, model: TextTranslator, part: Part) -> Columns:
    """Return the column of what the model writes."""
    sources = part.samples
    unknown = sum(bool(model.tokenizers_[0].unknown_in(source)) for source in sources)
    if unknown:
        print(
            f"{unknown:,} of {len(sources):,} sources have characters that the model was not "
            "trained on: what it makes of them is a guess",
            file=sys.stderr,
        )
    written = model.translate(
        sources, options.beams, batch_size=options.batch_size, communicator=options.ranks
    )
    return {PREDICTED: written}


def _fillings(options: argparse.Namespace, model: TextFiller, part: Part) -> list[Filling]:
    """Return what fills the gaps of each text."""
    if options.probabilities:
        raise ValueError("--probabilities is given and the model fills gaps; expected none")
    return [fill(model, text) for text in part.samples]


def _columns_of(fillings: list[Filling]) -> Columns:
    """Return the columns of the best words, and of the probabilities of all of a text together."""
    best = [[candidates[0] for candidates in filling] for filling in fillings]
    return {
        PREDICTED: [" ".join(word for word, _ in pairs) for pairs in best],
        PROBABILITY: [f"{math.prod(p for _, p in pairs):.6f}" for pairs in best],
    }


def _lines_of_gaps(part: Part, fillings: list[Filling]) -> list[str]:
    """Return a table for each text: the best words for all gaps, then the next ones."""
    lines = []
    for i, filling in enumerate(fillings):
        rows = []
        for candidates in zip(*filling, strict=True):
            rows.append([cell for word, p in candidates for cell in (word, f"{p:.4f}")])
        lines.append(describe_sample(part, i))
        lines += [f"  {line}" for line in align_columns(rows, "<>" * len(filling))]
    return lines


def _labels(options: argparse.Namespace, model: Classifier, part: Part) -> Columns:
    """Return the columns of labels and probabilities."""
    empty = [isinstance(sample, str) and not sample.strip() for sample in part.samples]
    _check_empty(empty)
    if isinstance(model, TextClassifier):
        _say_unknown(part, [i for i in model.unknown(part.samples) if not empty[i]])
    p = model.predict_probabilities(part.samples, options.batch_size, communicator=options.ranks)
    columns = {
        PREDICTED: model.classes_[p.argmax(axis=1)].tolist(),
        PROBABILITY: _six_decimals(p.max(axis=1)),
    }
    if options.probabilities:
        for i, label in enumerate(model.classes_):
            columns[_name_of_probability(label)] = _six_decimals(p[:, i])
    return {name: _blank_empty(column, empty) for name, column in columns.items()}


def _six_decimals(probabilities: np.ndarray) -> list[str]:
    return [f"{p:.6f}" for p in probabilities]


def _blank_empty(column: list[Any], empty: list[bool]) -> list[Any]:
    """Return a column with "" for the texts that are empty."""
    return ["" if is_empty else cell for cell, is_empty in zip(column, empty, strict=True)]


def _check_empty(empty: list[bool]) -> None:
    """Check that some texts have words, and say how many have none."""
    if all(empty):
        raise ValueError(
            f"{'all texts are' if len(empty) > 1 else 'the text is'} empty; expected words"
        )
    if any(empty):
        print(f"{sum(empty):,} of {len(empty):,} texts are empty: no label", file=sys.stderr)


def _say_unknown(part: Part, unknown: list[int]) -> None:
    """Say how many texts have no known word."""
    if unknown:
        print(
            f"{len(unknown):,} of {len(part):,} texts have no word that the model knows, the "
            f"first is {describe_sample(part, unknown[0])!r}: their label is a guess",
            file=sys.stderr,
        )


def describe_sample(part: Part, i: int) -> str:
    """Return a sample in a few words: the beginning of a text, or what a series is called."""
    sample = part.samples[i]
    if isinstance(sample, str):
        return common.one_line(sample, 70)
    return f"{common.one_line(part.ids[i], 40)} ({len(sample)} steps)"


def table_in(words: list[str]) -> str | None:
    """Return the table or the file of text that words name; None for texts.

    A text may end like a table's name.
    """
    for word in words:
        if not word or any(c.isspace() for c in word):
            continue
        if word == "-" or table_format(Path(word)) is not None or _is_file_of_lines(word):
            if len(words) > 1:
                raise ValueError(
                    f"{word} is a table, and there is more; expected one table, or texts, not both"
                )
            return word
        if Path(word).suffix.lower() in FILES or os.path.exists(word):  # noqa: PTH110 - no error for long texts
            raise ValueError(
                f"{word} is the name of a file or folder, not a table; expected texts in quotes, "
                f"or one of {', '.join(SUFFIXES)}. In Excel: save as CSV UTF-8. If the word itself "
                "is the text, put it into a table"
            )
    return None


def _is_file_of_lines(word: str) -> bool:
    """Return whether a word is the name of a file with a text, perhaps with its label, a line."""
    path = Path(word)
    is_short = len(word) < LONGEST_NAME
    return is_short and path.is_file() and (is_text_file(word) or is_fasttext_file(path))


def _table(options: argparse.Namespace, columns: Columns, new: Columns) -> bytes:
    """Return columns that were read and new ones, as CSV or TSV."""
    words = io.StringIO(newline="")
    writer = csv.writer(words, delimiter="\t" if ".tsv" in options.out.suffixes else ",")
    writer.writerow([*columns, *new])
    writer.writerows(zip(*columns.values(), *new.values(), strict=True))
    return words.getvalue().encode()
