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
def test_a_finding_is_pinned_and_stands_alone(script):
    text = script.read_text()
    assert os.access(script, os.X_OK)
    (packages,) = re.findall(r"pip install --quiet --quiet (.+)", text)
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", package) for package in packages.split())
    assert "npformer" not in text
    assert "mktemp -d" in text
    assert re.search(r"^# Expected: ", text, flags=re.MULTILINE)
    assert re.search(r"^# Seen: ", text, flags=re.MULTILINE)
