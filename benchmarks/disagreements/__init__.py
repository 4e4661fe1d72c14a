"""Where libraries disagree: the same numbers through each, beside npformer's in float64.

Each library runs in an environment for it alone, which uv makes and keeps. On Linux a plain torch
brings CUDA: for its build without, set UV_INDEX to PyTorch's index of CPU builds, or UV_FIND_LINKS
to a folder with its wheel.
"""

import argparse

from benchmarks.disagreements.asking import ask_library, library_names, questions_of
from benchmarks.disagreements.page import PAGE, page_text, summary
from benchmarks.disagreements.parts import PARTS
from benchmarks.disagreements.table import STORED, stored_table, table_text, update_table


def run(arguments: list[str]) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks disagreements", description=__doc__)
    names = library_names()
    parser.add_argument(
        "libraries",
        nargs="*",
        metavar="LIBRARY",
        help=f"ask these again (all): {', '.join(names)}",
    )
    parser.add_argument(
        "--page-only", action="store_true", help="ask none, and write the page of the stored table"
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.libraries) - set(names))
    if unknown:
        parser.error(f"there is no script for {unknown[0]}; expected some of {', '.join(names)}")
    questions = questions_of(PARTS)
    answers = {}
    if not options.page_only:
        for library in options.libraries or names:
            print(f"asking {library}", flush=True)
            answers[library] = ask_library(library, questions)
    table = update_table(stored_table(), PARTS, answers)
    STORED.write_text(table_text(table), "utf-8")
    PAGE.write_text(page_text(table), "utf-8")
    print(summary(table))
