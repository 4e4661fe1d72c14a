"""The pages on extending: the table is complete, and the commands run with the pages' own code."""

import re
import shlex

import pytest

from npformer import cli
from tests.extending.conftest import TABLES
from tests.extending.plugin import DOCS, PAGES, code_of

COMMAND = re.compile(r"^npformer (.+)$", re.MULTILINE)


def text_of(page):
    return (DOCS / page).read_text("utf-8")


def test_every_table_is_on_the_page_with_what_its_builders_get():
    lines = text_of("extending.md").splitlines()
    rows = [line for line in lines if line.startswith("| `npformer.")]
    assert len(rows) == len(TABLES)
    for table in TABLES:
        (row,) = [row for row in rows if f"`{table.table}`" in row]
        for word in re.findall(r"\w+=|d_model|d_ff|seed|MixerSettings", table.gets):
            assert word in row


def test_the_page_shows_what_load_says_of_a_name_that_nobody_registered():
    message = "The file needs the activation 'swish': before nf.load, register it"
    assert message in text_of("extending.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_all_its_parts(page):
    headings = re.findall(r"^## (.+)$", text_of(f"extending/{page}.md"), re.MULTILINE)
    first = ["The task", "The backward pass, derived", "The code", "The check", "Typical mistakes"]
    assert headings[:5] == first
    assert headings[-3:] == ["In a configuration", "From the command line", "Read on"]
    assert f"extending/{page}.md" in text_of("extending.md")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_run_with_its_code(page, empty, tmp_path, monkeypatch, capsys, no_curves):
    text = text_of(f"extending/{page}.md")
    (tmp_path / f"my_{page}.py").write_text(code_of(page), "utf-8")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(command) for command in COMMAND.findall(text)]
    assert [words[0] for words in commands] == ["gradcheck", "train"]
    for words in commands:
        assert f"my_{page}.py" in words
        quick = ["--quiet", "--d-model=16", "--heads=2", "--d-ff=16"] if words[0] == "train" else []
        assert cli.main([*words, *quick]) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    assert "registered" in out
    assert any((tmp_path / "runs").glob("*/model.safetensors"))
