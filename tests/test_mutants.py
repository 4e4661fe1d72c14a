"""What `python -m benchmarks mutants` records of tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import NEEDS

coverage = pytest.importorskip("coverage", reason=NEEDS["coverage"])

ROOT = Path(__file__).parents[1]

TESTS = """
import sys

from measured import double


def test_first():
    assert double(1) == 2
    sys.settrace(None)


def test_second():
    assert double(2) == 4
"""


def test_a_test_that_traces_does_not_end_the_record(tmp_path):
    (tmp_path / "measured.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "test_both.py").write_text(TESTS)
    (tmp_path / "wishes.json").write_text(json.dumps({}))
    environment = os.environ | {"NPFORMER_MUTANTS": str(tmp_path / "wishes.json")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = (
        f"{sys.executable} -m coverage run --source {tmp_path} -m pytest -p no:cacheprovider "
        "-p benchmarks.mutants_plugin test_both.py"
    )
    subprocess.run(command.split(), cwd=tmp_path, env=environment, check=True)

    data = coverage.CoverageData(str(tmp_path / ".coverage"))
    data.read()
    tests = data.contexts_by_lineno(str(tmp_path / "measured.py"))[2]
    assert sorted(tests) == ["test_both.py::test_first", "test_both.py::test_second"]
