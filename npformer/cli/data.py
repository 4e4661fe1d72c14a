"""npformer data: the data that come with the package, as files to try the other commands on."""

import argparse
import csv
import gzip
import io
import sys
from collections.abc import Iterator

from npformer.cli.embedded import EMBEDDED, embedded_file
from npformer.cli.options import Commands, add_command
from npformer.cli.parser import Parser
from npformer.core.support.tables import align_columns
from npformer.data import vowels

COLUMNS = {"text": "review", "label": "opinion"}
"""What the columns of sentences are called in a table of one's own."""


EPILOG = """\
npformer data sentences > reviews.csv
npformer train reviews.csv --text review --label opinion

npformer data vowels > vowels.csv
npformer train vowels.csv --id utterance --time step --label speaker

npformer data shakespeare > plays.txt
npformer data pronunciations > words.csv

The licences are beside the data, in the package's folder npformer/data."""


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "data",
        summary="print sample data that come with the package, for trying out other commands",
        epilog=EPILOG,
        run=run,
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        choices=list(EMBEDDED),
        help="name of a data set (default: list them)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the data of a name, or the names."""
    if options.name is None:
        rows = [("name", "size", "licence", "what")]
        rows += [(name, data.size, data.licence, data.what) for name, data in EMBEDDED.items()]
        lines = align_columns(rows, "<><<")
        print("\n".join([*lines, "", "npformer data sentences > reviews.csv"]))
    elif options.name == "vowels":
        csv.writer(sys.stdout, lineterminator="\n").writerows(_steps())
    else:
        with gzip.open(embedded_file(options.name)) as unpacked:
            text = io.TextIOWrapper(unpacked, "utf-8", newline="")
            sys.stdout.write(",".join(COLUMNS.get(n, n) for n in next(text).split(",")))
            sys.stdout.writelines(text)
    return 0


def _steps() -> Iterator[list[object]]:
    """Yield the rows of a table of series: a row for each step."""
    yield ["utterance", "step", *(f"c{i}" for i in range(1, 13)), "speaker"]
    dataset = vowels()
    everything = [*zip(*dataset.train, strict=True), *zip(*dataset.test, strict=True)]
    for number, (series, speaker) in enumerate(everything):
        for step, values in enumerate(series.tolist()):
            yield [number, step, *values, speaker]
