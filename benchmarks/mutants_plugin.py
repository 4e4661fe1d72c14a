"""A pytest plugin for `python -m benchmarks mutants`: which tests run, and their outcomes.

The environment variable NPFORMER_MUTANTS names a JSON file of settings: "shard": [k, n] runs one of
n parts of all tests, "only" some tests, in the order given, and "record" is a file for the outcome
and duration of each.
"""

import json
import os
import sys
from pathlib import Path

import coverage
import pytest

WISHES = json.loads(Path(os.environ["NPFORMER_MUTANTS"]).read_text("utf-8"))
DONE: dict[str, dict] = {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep only the requested tests."""
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
    """Tell coverage which test is running."""
    if (measuring := coverage.Coverage.current()) is not None:
        measuring.switch_context(item.nodeid)
    tracer = sys.gettrace()
    try:
        return (yield)
    finally:
        sys.settrace(tracer)  # a test that traces by itself ends coverage's measurement


def pytest_runtest_logreport(report):
    """Record the outcome of a test's setup, call and teardown."""
    test = DONE.setdefault(report.nodeid, {"passed": False, "seconds": 0.0})
    test["seconds"] += report.duration
    if report.when == "call":
        test["passed"] = report.passed
    elif report.failed:
        test["passed"] = False


def pytest_sessionfinish():
    """Write the record."""
    if "record" in WISHES:
        Path(WISHES["record"]).write_text(json.dumps(DONE))
