"""The code in docs/extending.md runs, and its table is complete."""

import re

from tests.extending.conftest import TABLES
from tests.test_documents import ROOT, run_blocks


def test_the_code_runs(empty, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where it saves models
    names = run_blocks("docs/extending.md")
    printed = capsys.readouterr().out
    assert "The file needs the mixer 'mean': before nf.load, register it" in printed
    assert names["history"].validation_accuracy[-1] > 0.5


def test_every_table_is_on_the_page_with_what_its_builders_get():
    lines = (ROOT / "docs/extending.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `npformer.")]
    assert len(rows) == len(TABLES)
    for table in TABLES:
        (row,) = [row for row in rows if f"`{table.table}`" in row]
        for word in re.findall(r"\w+=|d_model|d_ff|seed|MixerSettings", table.gets):
            assert word in row
