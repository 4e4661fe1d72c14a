"""npformer gradcheck: check every backward pass."""

import argparse
import re
from typing import Any

import numpy as np

from npformer.cli.common import counted
from npformer.cli.plugins import load_plugins
from npformer.core.support.words import did_you_mean


def run(options: argparse.Namespace) -> int:
    """Print a line for each case, and the report of each that fails."""
    from npformer.proof.report import COMPLEX_TOLERANCE, TOLERANCE, GradcheckError

    chosen = _chosen(options)
    width = max(len(case.name) for case in chosen)
    print(f"{'group':<10}  {'case':<{width}}  tensors  largest error  complex step  ")
    wrong, reports = 0, []
    for case in chosen:
        try:
            report, verdict = case.run(), "passed"
        except GradcheckError as error:
            report, verdict = error.report, "FAILED"
            wrong += 1
        reports.append(report)
        by_complex_step = "-" if report.complex_error is None else f"{report.complex_error:.1e}"
        skipped = sum(tensor.no_derivative for tensor in report.tensors)
        note = f"  ({skipped} without a derivative)" if skipped else ""
        print(
            f"{case.group:<10}  {case.name:<{width}}  {len(report.tensors):>7}  "
            f"{report.error:>13.1e}  {by_complex_step:>12}  {verdict}{note}"
        )
        if options.verbose or verdict == "FAILED":
            print(report)
    errors = [r.error for r in reports]
    complex_errors = [r.complex_error for r in reports if r.complex_error is not None]
    print(
        f"\n{counted(len(chosen), 'cases')}, {len(chosen) - wrong} passed, {wrong} failed\n"
        f"central differences: largest relative error {np.max(errors):.1e}, tolerance "
        f"{TOLERANCE:g}\n"
        f"complex step: largest relative error {np.max(complex_errors, initial=0.0):.1e} in "
        f"{counted(len(complex_errors), 'cases')}, tolerance {COMPLEX_TOLERANCE:g}; - where it "
        "does not apply"
    )
    return 1 if wrong else 0


def _chosen(options: argparse.Namespace) -> list[Any]:
    """Return the cases whose names contain one of the given words, or all if none is given."""
    # These two add their cases; with the engine, layers are compared with their twins.
    import npformer.learn.museum.published_cases
    import npformer.models.trainable.cases  # noqa: F401
    from npformer.cli.plugin_cases import plugin_cases
    from npformer.proof.cases import cases

    every = cases()
    load_plugins(options.plugin)  # later, because `cases` builds one for each registered name
    every += plugin_cases()
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
