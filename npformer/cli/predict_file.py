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

from npformer.cli import common
from npformer.cli.trained import Trained
from npformer.data.tables import SUFFIXES, kind_of
from npformer.tasks.estimators import Classifier, TextClassifier, TextFiller, TextTranslator
from npformer.tasks.estimators.filling import fill
from npformer.tasks.sources.file_task import Part
from npformer.training.inspection.trace_table import aligned
from npformer.training.storage.files import write_whole

NAMED = {"pairs": "sources", "unlabelled": "texts"}
"""What is predicted for, by the kind of file, where it is called otherwise."""

Columns = Mapping[str, Sequence[Any]]
PREDICTED, PROBABILITY = "predicted", "probability"

MOST_SHOWN = 1000
"""Characters of an answer on one line."""

FILES = {".txt", ".xlsx", ".xls", ".ods", ".doc", ".docx", ".odt", ".pdf", ".html", ".xml"}
"""Endings of the names of files that no command reads."""


def run(options: argparse.Namespace, trained: Trained) -> int:
    """Print or write what the model predicts."""
    model, kind = trained.model, NAMED.get(trained.kind, trained.kind)
    part, words = _input(options, trained, kind), None
    if isinstance(model, TextFiller):
        new, words = _gaps(options, model, part)
    else:
        new = (_translations if kind == "sources" else _labels)(options, model, part)
    if options.ranks.rank:
        return 0  # the first writes and prints
    print(f"{common.counted(len(part), kind)} on {common.device_of(options)}", file=sys.stderr)
    if options.out is not None:
        write_whole(options.out, _table(options, part.columns, new))
        print(f"{options.out}: {common.counted(len(part), 'rows')}")
    elif words is not None:
        print("\n".join(words))
    elif kind == "sources" and len(part) == 1:
        print(*new[PREDICTED])
    else:
        table = [*zip(*new.values(), [in_brief(part, i) for i in range(len(part))], strict=True)]
        if kind == "sources":
            table = [row[::-1] for row in table]  # a source, and what it becomes
        if options.probabilities:
            table.insert(0, (*new, ""))
        lines = [[common.one_line(str(cell), MOST_SHOWN) for cell in row] for row in table]
        print("\n".join(aligned(lines, "<" + ">" * (len(new) - 1) + "<")))
    return 0


def _input(options: argparse.Namespace, trained: Trained, kind: str) -> Part:
    """Return what to predict."""
    words = options.input
    for name in ("mask", "text", "probabilities") if kind == "sources" else ("mask",):
        if getattr(options, name):
            raise ValueError(f"--{name} is given and the model takes {kind}; expected none")
    series = kind == "series"
    file = (words[0] if len(words) == 1 else None) if series else named_table(words)
    if file is not None:
        out, path = options.out, Path(file)
        if out is not None and out.exists() and path.exists() and out.samefile(path):
            raise ValueError(f"--out {out} is the file that is read; expected another name")
        return trained.read(file, options, labelled=False)
    if words and not series:
        return Part(list(words), columns={kind.removesuffix("s"): words})
    own = {"sources": '"a source"', "series": "FILE"}.get(kind, '"a text of your own"')
    wanted = "one file" if series else "texts in quotes, or one table"
    given = "more than one file" if words else "nothing"
    raise ValueError(
        f"there is {given} to predict; expected {wanted}: npformer predict {options.model} {own}"
    )


def _translations(options: argparse.Namespace, model: TextTranslator, part: Part) -> Columns:
    """Return the column of what the model writes."""
    sources = part.samples
    if unknown := sum(bool(model.tokenizers_[0].unknown_in(source)) for source in sources):
        print(
            f"{unknown:,} of {len(sources):,} sources have characters that the model was not "
            "trained on: what it makes of them is a guess",
            file=sys.stderr,
        )
    how = {"batch_size": options.batch_size, "communicator": options.ranks}
    return {PREDICTED: model.translate(sources, options.beams, **how)}


def _gaps(options: argparse.Namespace, model: TextFiller, part: Part) -> tuple[Columns, list[str]]:
    """Return the columns of the best words for the gaps of texts, and a table for each text."""
    if options.probabilities:
        raise ValueError("--probabilities is given and the model fills gaps; expected none")
    found, lines = [fill(model, text) for text in part.samples], []
    for i, gaps in enumerate(found):
        ranks = zip(*gaps, strict=True)  # the best words for all gaps, then the next ones
        rows = [[c for word, p in rank for c in (word, f"{p:.4f}")] for rank in ranks]
        lines += [in_brief(part, i), *(f"  {line}" for line in aligned(rows, "<>" * len(gaps)))]
    best = [[words[0] for words in gaps] for gaps in found]
    return {
        PREDICTED: [" ".join(word for word, _ in each) for each in best],
        PROBABILITY: [f"{math.prod(p for _, p in each):.6f}" for each in best],
    }, lines


def _labels(options: argparse.Namespace, model: Classifier, part: Part) -> Columns:
    """Return the columns of labels and probabilities."""
    known = [not isinstance(each, str) or bool(each.strip()) for each in part.samples]
    if not any(known):
        raise ValueError(
            f"{'all texts are' if len(part) > 1 else 'the text is'} empty; expected words"
        )
    if empty := known.count(False):
        print(f"{empty:,} of {len(part):,} texts are empty: no label", file=sys.stderr)
    if isinstance(model, TextClassifier):
        unknown = [i for i in model.unknown(part.samples) if known[i]]
        if unknown:
            print(
                f"{len(unknown):,} of {len(part):,} texts have no word that the model knows, the "
                f"first is {in_brief(part, unknown[0])!r}: their label is a guess",
                file=sys.stderr,
            )
    p = model.predict_probabilities(part.samples, options.batch_size, communicator=options.ranks)
    labels = zip(model.classes_[p.argmax(axis=1)].tolist(), known, strict=True)
    columns = {PROBABILITY: p.max(axis=1)}
    if options.probabilities:
        columns |= {f"p({name})": p[:, i] for i, name in enumerate(model.classes_)}
    return {PREDICTED: [label if words else "" for label, words in labels]} | {
        name: [f"{each:.6f}" * words for each, words in zip(column, known, strict=True)]
        for name, column in columns.items()
    }


def in_brief(part: Part, i: int) -> str:
    """Return a sample in a few words: the beginning of a text, or what a series is called."""
    sample = part.samples[i]
    if isinstance(sample, str):
        return common.one_line(sample, 70)
    return f"{common.one_line(part.ids[i], 40)} ({len(sample)} steps)"


def named_table(words: list[str]) -> str | None:
    """Return the table that words name; None for texts, even one that ends like a table's name."""
    for word in words:
        if not word or any(c.isspace() for c in word):
            continue
        if word == "-" or kind_of(Path(word)) is not None:
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


def _table(options: argparse.Namespace, columns: Columns, new: Columns) -> bytes:
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
