"""Findings: each script stands in their table, pins its packages, and leaves npformer out."""

import os
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "findings"
SCRIPTS = sorted(FOLDER.glob("*.sh"))


def test_the_table_has_a_row_for_each_script():
    names = re.findall(r"^\| `(\w+)` \|", (FOLDER / "README.md").read_text(), flags=re.MULTILINE)
    assert names == [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_packages_of_a_finding_have_versions(script):
    (packages,) = re.findall(r"pip install --quiet --quiet (.+)", script.read_text())
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", package) for package in packages.split())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_finding_is_run_by_itself(script):
    text = script.read_text()
    assert os.access(script, os.X_OK)
    assert "npformer" not in text
    assert "mktemp -d" in text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_finding_tells_what_was_expected(script):
    text = script.read_text()
    assert re.search(r"^# Expected: ", text, flags=re.MULTILINE)
    assert re.search(r"^# Seen: ", text, flags=re.MULTILINE)
