"""Each npformer command in the README and on a page can be typed, and the files it reads exist."""

import re
import shlex
from pathlib import Path

import pytest

from npformer.cli.program import make_parser
from tests.cli.conftest import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = ("README.md", "docs/five_minutes.md", "docs/your_file.md")
"""Pages of which all commands but digits' are run, one after the other, in an empty folder."""


def commands(page):
    """Return the npformer commands in a page's blocks of shell commands."""
    joined = "\n".join(BLOCK.findall((ROOT / page).read_text("utf-8"))).replace("\\\n", " ")
    lines = [line.split(" # ")[0] for line in joined.splitlines()]
    found = [match for line in lines for match in re.findall(r"npformer [a-z].*?(?= && |$)", line)]
    return [line for line in found if not line.startswith("npformer COMMAND")]


def words(line):
    """Return the words of a command, and the file that its output goes to."""
    typed, _, file = line.partition(" > ")
    return shlex.split(typed)[1:], file.strip()


def test_each_command_is_one_that_npformer_takes(capsys):
    parser, wrong, n = make_parser(), [], 0
    for page in PAGES:
        for line in commands(page):
            n += 1
            try:
                parser.parse_args(words(line)[0])
            except SystemExit as error:
                if error.code:
                    wrong.append(f"{page}: {line}: {capsys.readouterr().err.strip()}")
    assert n > 60
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("page", TYPED)
def test_the_commands_of_a_page_run_in_an_empty_folder(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ran = [line for line in commands(page) if "digits" not in line]
    assert any("npformer predict" in line for line in ran)
    for line in ran:
        typed, file = words(line)
        capsys.readouterr()
        brief = ["--epochs=1"] * (typed[0] in ("train", "pretrain"))
        assert run(*typed, *brief) == 0, line
        if file:
            (tmp_path / file).write_text(capsys.readouterr().out, "utf-8")
