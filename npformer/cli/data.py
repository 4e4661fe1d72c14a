"""npformer data: the data that come with the package, as files to try the other commands on."""

import argparse
import csv
import gzip
import importlib.resources
import io
import sys
from collections.abc import Iterator

from npformer.cli.options import EMBEDDED
from npformer.data import vowels
from npformer.training.inspection.trace_table import align_columns

COLUMNS = {"text": "review", "label": "opinion"}
"""What the columns of sentences are called in a table of one's own."""


def run(options: argparse.Namespace) -> int:
    """Print the data of a name, or the names."""
    if options.name is None:
        keys = ("size", "licence", "what")
        about = [("name", *keys), *((n, *map(row.get, keys)) for n, row in EMBEDDED.items())]
        print(
            "\n".join([*align_columns(about, "<><<"), "", "npformer data sentences > reviews.csv"])
        )
    elif options.name == "vowels":
        csv.writer(sys.stdout, lineterminator="\n").writerows(_steps())
    else:
        place = importlib.resources.files("npformer.data") / EMBEDDED[options.name]["file"]
        with place.open("rb") as packed, gzip.open(packed) as unpacked:
            lines = io.TextIOWrapper(unpacked, "utf-8", newline="")
            sys.stdout.write(",".join(COLUMNS.get(n, n) for n in next(lines).split(",")))
            sys.stdout.writelines(lines)
    return 0


def _steps() -> Iterator[list[object]]:
    """Yield the rows of a table of series: a row for each step."""
    yield ["utterance", "step", *(f"c{i}" for i in range(1, 13)), "speaker"]
    parts = vowels()
    everything = [*zip(*parts.train, strict=True), *zip(*parts.test, strict=True)]
    for number, (series, speaker) in enumerate(everything):
        for step, values in enumerate(series.tolist()):
            yield [number, step, *values, speaker]
