"""A plugin of pytest for `python -m benchmarks mutants`: which tests run, and how each one goes.

The environment variable NPFORMER_MUTANTS names a JSON file of wishes: "shard": [k, n] runs one of
n parts of all tests, "only" some tests, in the order given, and "record" is a file for the outcome
and duration of each.
"""

import json
import os
from pathlib import Path

import coverage
import pytest

WISHES = json.loads(Path(os.environ["NPFORMER_MUTANTS"]).read_text("utf-8"))
DONE: dict[str, dict] = {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests that were asked for."""
    kept = items[:]
    if "shard" in WISHES:
        part, parts = WISHES["shard"]
        files = sorted({str(item.path) for item in items})
        kept = [item for item in items if files.index(str(item.path)) % parts == part]
    if "only" in WISHES:
        order = {name: i for i, name in enumerate(WISHES["only"])}
        kept = [item for item in items if item.nodeid in order]
        kept.sort(key=lambda item: order[item.nodeid])
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Tell coverage which test runs."""
    if (measuring := coverage.Coverage.current()) is not None:
        measuring.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report):
    """Note how a test went: setup, call and teardown."""
    test = DONE.setdefault(report.nodeid, {"passed": False, "seconds": 0.0})
    test["seconds"] += report.duration
    if report.when == "call":
        test["passed"] = report.passed
    elif report.failed:
        test["passed"] = False


def pytest_sessionfinish():
    """Write the notes."""
    if "record" in WISHES:
        Path(WISHES["record"]).write_text(json.dumps(DONE))
