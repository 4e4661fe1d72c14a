"""npformer gradcheck FILE.py: check what a file of somebody's own code defines."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from npformer.cli.common import counted
from npformer.cli.gradcheck_pages import GradcheckPages
from npformer.cli.plugins import is_file, load_plugins

if TYPE_CHECKING:
    from npformer.proof.trials.trial import Trial


INCOMPLETE = 3
"""The exit status if nothing is wrong, but some of what a file defines could not be tried."""

EXIT_STATUSES = """\
exit status of the check of a file:
  0  all that it defines was tried and is right
  1  something is wrong
  2  nothing could be tried
  3  nothing is wrong, but something could not be tried; with --allow-untried, 0"""


def is_file_or_module(word: str) -> bool:
    """Whether a word on the command line is a file or a dotted name, not one in a case's name."""
    dotted = "." in word and all(part.isidentifier() for part in word.split("."))
    return is_file(word) or dotted


def check_files(names: list[str], options: argparse.Namespace) -> int:
    """Check each file, and print what was tried, what came of it and what could not be tried."""
    from npformer.proof.trials.trial import try_module

    pages = GradcheckPages(options.report, overwrite=options.overwrite, every_case=options.verbose)
    trials: list[Trial] = []
    for name in names:
        module = _load(name)
        print(name)
        for trial in filter(_is_told, try_module(module)):
            trials.append(trial)
            _print_trial(trial, options.verbose, pages)
    for trial in _registered_trials():
        trials.append(trial)
        _print_trial(trial, options.verbose, pages)
    pages.write_index()
    tried = [trial for trial in trials if trial.reports]
    if not tried:
        _explain_nothing(names, trials)
        return 2
    n_wrong = sum(not trial.passed for trial in tried)
    n_untried = len(trials) - len(tried)
    untried = f"; {n_untried} could not be tried" if n_untried else ""
    print(f"\n{len(tried)} checked: {len(tried) - n_wrong} right, {n_wrong} wrong{untried}")
    if n_wrong:
        return 1
    return INCOMPLETE if n_untried and not options.allow_untried else 0


def _load(name: str) -> ModuleType:
    """Import a file or a module, and return the module."""
    (loaded,) = load_plugins([name], option="")
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        same_file = isinstance(file, str) and Path(file).resolve() == Path(loaded)
        if same_file or getattr(module, "__name__", "") == loaded:
            return module
    raise ValueError(f"{name} was imported, but its module is gone")


def _is_told(trial: Trial) -> bool:
    """Whether a trial says something: a class that is registered is tried by its name as well."""
    from npformer.cli.plugin_cases import registries

    builders = [b for registry in registries() for b in registry.user_builders().values()]
    classes = [getattr(builder, "__self__", builder) for builder in builders]
    registered = {getattr(kind, "__name__", "") for kind in classes}
    return bool(trial.reports) or trial.title not in registered


def _registered_trials() -> Iterator[Trial]:
    """Yield a trial of each layer or loss that files have registered under a name."""
    from npformer.cli.plugin_cases import plugin_cases
    from npformer.proof.report import GradcheckError
    from npformer.proof.trials.trial import Trial

    for case in plugin_cases():
        try:
            report = case.run()
        except GradcheckError as error:
            report = error.report
        yield Trial(case.name, reports=[("by its name, with defaults", report)])


def _print_trial(trial: Trial, verbose: bool, pages: GradcheckPages) -> None:
    """Print a line for each check, the report of each that fails, and what could not be tried."""
    from npformer.proof.report import GradcheckReport

    print(f"\n  {trial.title}")
    for what, report in trial.reports:
        print(f"    {'right' if report.passed else 'WRONG'}   {what}")
        if verbose or not report.passed:
            print(textwrap.indent(str(report).strip(), " " * 6))
        if isinstance(report, GradcheckReport):
            pages.add(f"{trial.title} {what}", report)
    if trial.passed and not verbose:
        _print_lines("protocol: ", trial.observations())
        _print_lines("note: ", trial.notes())
    _print_lines("not for ", trial.limits)
    _print_lines("not tried: ", [*trial.untested, *filter(None, [trial.reason])])
    _print_lines("in Python: ", filter(None, [trial.advice]))


def _print_lines(begin: str, lines: Iterable[str]) -> None:
    for line in lines:
        print(f"    {begin}{line}")


def _explain_nothing(names: list[str], trials: list[Trial]) -> None:
    files = " and ".join(names)
    if trials:
        print(
            f"\nnothing could be tried of the {counted(len(trials), 'definitions')} in {files}; "
            "write the lines above in Python",
            file=sys.stderr,
        )
        return
    print(
        f"\n{files}: there is nothing to check; expected a class with forward and backward, "
        "functions f and f_backward, a function called ..._loss that returns (loss, gradient), an "
        "optimizer or a schedule",
        file=sys.stderr,
    )
