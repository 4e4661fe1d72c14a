"""The Python code of the README runs as it stands, block after block."""

import re
from pathlib import Path

import pytest

import npformer

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_blocks(page):
    """Run a page's blocks of Python, with few epochs, and return the names that they leave."""
    text = (ROOT / page).read_text().replace("epochs=20", "epochs=2")
    names = {"__name__": "__main__"}
    blocks = list(BLOCK.finditer(text))
    assert blocks
    for block in blocks:
        before = "\n" * text.count("\n", 0, block.start(1))  # an error then names the page's line
        exec(compile(before + block[1], page, "exec"), names)
    return names


@pytest.mark.parametrize("page", ["README.md"])
def test_the_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where it saves models
    run_blocks(page)


@pytest.mark.parametrize("name", npformer.MIXERS)
def test_every_mixer_has_a_row_on_its_page(name):
    page = (ROOT / "docs" / "mixers.md").read_text("utf-8")
    assert f"\n| `{name}` |" in page
