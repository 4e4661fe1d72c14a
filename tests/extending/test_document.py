"""The Python code of docs/extending.md runs as it stands, block after block."""

import re
from pathlib import Path

import npformer as nf
from npformer.core import INITIALIZERS
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS
from npformer.losses import LOSSES
from npformer.optim import SCHEDULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLES = [ACTIVATIONS, FFNS, nf.MIXERS, INITIALIZERS, POOLINGS, LOSSES, SCHEDULES]


def test_the_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where it saves models
    before = [dict(table) for table in TABLES]
    text = PAGE.read_text()
    names = {"__name__": "__main__"}
    try:
        for block in BLOCK.finditer(text):
            above = "\n" * text.count("\n", 0, block.start(1))  # an error names the page's line
            exec(compile(above + block[1], "docs/extending.md", "exec"), names)
    finally:
        for table, old in zip(TABLES, before, strict=True):
            table.clear()
            table.update(old)
    printed = capsys.readouterr().out
    assert "The file needs the mixer 'mean': before nf.load, register it" in printed
    assert names["history"].validation_accuracy[-1] > 0.5


def test_every_table_is_on_the_page_with_what_its_builders_get():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `npformer.")]
    assert len(rows) == len(TABLES)
    for table in TABLES:
        (row,) = [row for row in rows if f"`{table.table}`" in row]
        for word in re.findall(r"\w+=|d_model|d_ff|seed|MixerSettings", table.gets):
            assert word in row
