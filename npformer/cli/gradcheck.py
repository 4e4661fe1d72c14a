"""npformer gradcheck: check every backward pass."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from npformer.cli.common import counted
from npformer.cli.gradcheck_file import EXIT_STATUSES, check_files, is_file_or_module
from npformer.cli.gradcheck_pages import GradcheckPages, add_report
from npformer.cli.options import Commands, add_command
from npformer.cli.parser import Parser
from npformer.core.support.wording import did_you_mean

if TYPE_CHECKING:
    from npformer.proof.report import GradcheckReport


def add_parser(commands: Commands[Parser]) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "gradcheck",
        summary="check every backward pass against central differences in float64",
        run=run,
        epilog=EXIT_STATUSES,
    )
    parser.add_argument(
        "name",
        nargs="*",
        metavar="NAME | FILE.py",
        help="check only npformer's cases whose name contains one of these words "
        "(case-insensitive); or what a file, or a module by its dotted name, defines and "
        "registers: layers, losses, models, pairs of functions, optimizers and schedules, written "
        "for npformer or not",
    )
    parser.add_argument(
        "--allow-untried",
        action="store_true",
        help="of a file: exit with 0, not 3, if what could be tried is right and something could "
        "not be tried",
    )
    parser.add_argument("--verbose", action="store_true", help="print every tensor")
    add_report(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each case, and the report of each that fails."""
    from npformer.proof.report import GradcheckError

    files = [name for name in options.name if is_file_or_module(name)]
    if files:
        _refuse_names_beside_files(options.name, files)
        return check_files(files, options)
    chosen = _choose_cases(options)
    pages = GradcheckPages(options.report, overwrite=options.overwrite, every_case=options.verbose)
    width = max(len(case.name) for case in chosen)
    print(f"{'group':<10}  {'case':<{width}}  tensors  largest error  complex step  ")
    n_failed = 0
    reports = []
    for case in chosen:
        try:
            report, verdict = case.run(), "passed"
        except GradcheckError as error:
            report, verdict = error.report, "FAILED"
            n_failed += 1
        reports.append(report)
        pages.add(case.name, report)
        print(_line(case, report, verdict, width))
        if options.verbose or verdict == "FAILED":
            print(report)
    print(f"\n{_summary(reports, n_failed)}")
    pages.write_index()
    return 1 if n_failed else 0


def _refuse_names_beside_files(names: list[str], files: list[str]) -> None:
    """Raise ValueError for names of npformer's own cases beside somebody's own files."""
    others = [name for name in names if name not in files]
    if others:
        raise ValueError(
            f"got {' '.join(others)} beside {' '.join(files)}; expected files alone, each of which "
            "is checked whole, or names of npformer's cases alone"
        )


def _line(case: Any, report: GradcheckReport, verdict: str, width: int) -> str:
    """Return the line of a case, whose name takes `width` characters."""
    by_complex_step = "-" if report.complex_error is None else f"{report.complex_error:.1e}"
    skipped = sum(tensor.no_derivative for tensor in report.tensors)
    note = f"  ({skipped} without a derivative)" if skipped else ""
    return (
        f"{case.group:<10}  {case.name:<{width}}  {len(report.tensors):>7}  "
        f"{report.error:>13.1e}  {by_complex_step:>12}  {verdict}{note}"
    )


def _summary(reports: list[GradcheckReport], n_failed: int) -> str:
    """Return how many cases passed, and the largest errors of all."""
    from npformer.proof.report import COMPLEX_TOLERANCE, TOLERANCE

    n = len(reports)
    errors = [report.error for report in reports]
    complex_errors = [r.complex_error for r in reports if r.complex_error is not None]
    return (
        f"{counted(n, 'cases')}, {n - n_failed} passed, {n_failed} failed\n"
        f"central differences: largest relative error {np.max(errors):.1e}, tolerance "
        f"{TOLERANCE:g}\n"
        f"complex step: largest relative error {np.max(complex_errors, initial=0.0):.1e} in "
        f"{counted(len(complex_errors), 'cases')}, tolerance {COMPLEX_TOLERANCE:g}; - where it "
        "does not apply"
    )


def _choose_cases(options: argparse.Namespace) -> list[Any]:
    """Return the cases whose names contain one of the given words, or all if none is given."""
    # These three add their cases; with the engine, layers are compared with their twins.
    import npformer.learn.museum.published_cases
    import npformer.models.trainable.cases
    import npformer.tasks.wide.cases  # noqa: F401
    from npformer.proof.cases import cases

    every = cases()
    words = [_plain(word) for word in options.name]
    chosen = [c for c in every if not words or any(word in _plain(c.name) for word in words)]
    if not chosen:
        known = sorted({word for case in every for word in re.findall(r"\w+", case.name)})
        raise ValueError(
            f"no case is called {' or '.join(options.name)}; without a name, all cases are "
            f"checked{did_you_mean(options.name[0], known)}"
        )
    return chosen


def _plain(name: str) -> str:
    """Drop capitals and underscores, so that LayerNorm and layer_norm are the same."""
    return name.lower().replace("_", "")
