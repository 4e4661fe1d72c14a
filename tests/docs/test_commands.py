"""Each npformer command that a page or a help text shows can be typed; the files it reads exist."""

import re
import shlex
from pathlib import Path

import pytest

from docs.site.pages import same
from docs.site.typed import add_output, has_commands
from npformer.cli import train_file, train_task
from npformer.cli.program import parse
from tests.cli.conftest import parsers_of_commands, run

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = ("README.md", "docs/five_minutes.md", "docs/your_file.md")
"""Pages of which all commands but digits' are run, one after the other, in an empty folder."""
SHOWN = [page for page in PAGES if has_commands((ROOT / page).read_text("utf-8"))]
"""Pages that show what their commands print."""


def commands(page):
    """Return the npformer commands in a page's blocks of shell commands."""
    joined = "\n".join(BLOCK.findall((ROOT / page).read_text("utf-8"))).replace("\\\n", " ")
    lines = [line.split(" # ")[0] for line in joined.splitlines()]
    calls = [call for line in lines for call in re.findall(r"npformer [a-z].*?(?= && |$)", line)]
    return [call for call in calls if not call.startswith("npformer COMMAND")]


def words(line):
    """Return the words of a command, and the file that its output goes to."""
    typed, _, file = line.partition(" > ")
    return shlex.split(typed)[1:], file.strip()


def refused(lines, capsys):
    """Return those that the command line does not take, and why."""
    wrong = []
    for line in lines:
        try:
            parse(words(line)[0])
        except SystemExit as error:
            if error.code:
                wrong.append(f"{line}: {capsys.readouterr().err.strip()}")
    return wrong


def test_each_command_is_one_that_npformer_takes(capsys):
    lines = [line for page in PAGES for line in commands(page)]
    assert len(lines) > 60
    assert refused(lines, capsys) == []


def test_each_command_of_a_help_text_or_an_example_is_one_that_npformer_takes(capsys):
    texts = [parser.epilog or "" for parser in parsers_of_commands().values()]
    hints = [train_task.NEXT, *train_file.NEXT.values()]
    folder, task, mixer, page = "runs/digits-attention", "digits", "fourier", "npformer play"
    texts += [hint.format(folder, task, mixer, page) for hint in hints]
    typed = "\n".join(texts).replace("FILE", "mine.csv")
    lines = re.findall(r"^(?:.*: +)?(npformer [a-z].*)$", typed, re.MULTILINE)
    typed = "\n".join(example.read_text("utf-8") for example in ROOT.glob("examples/*.py"))
    lines += re.findall(r"``(npformer [a-z]+ .*?)``", typed)
    assert len(lines) > 28
    assert refused(lines, capsys) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", TYPED)
def test_the_commands_of_a_page_run_in_an_empty_folder(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ran = [line for line in commands(page) if "digits" not in line and "gradcheck" not in line]
    assert any("npformer predict" in line for line in ran)
    for line in ran:
        typed, file = words(line)
        capsys.readouterr()
        brief = ["--epochs=1"] * (typed[0] in ("train", "pretrain"))
        assert run(*typed, *brief) == 0, line
        if file:
            (tmp_path / file).write_text(capsys.readouterr().out, "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN)
def test_a_command_prints_what_the_page_shows(page):
    text = (ROOT / page).read_text("utf-8")
    assert same(text, add_output(text)), f"python -m docs.site.typed {page}"


def test_the_readme_shows_what_a_command_prints():
    assert "README.md" in SHOWN


@pytest.mark.slow
def test_a_command_reads_the_files_of_its_page():
    page = "```python\n# x.py\n{}\n```\n\n<!-- typed -->\n\n```sh\nnpformer gradcheck x.py\n```\n"
    assert "there is nothing to check" in add_output(page.format("n = 1"))
    assert "NameError" in add_output(page.format("n = lost"))


def test_only_commands_of_npformer_are_run():
    with pytest.raises(ValueError, match="begins with npformer"):
        add_output("<!-- typed -->\n\n```sh\nls\n```\n")
