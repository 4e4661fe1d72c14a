"""npformer exercises: what it prints and its exit statuses; files run in processes of their own."""

import re
from pathlib import Path

import pytest

from npformer import cli
from npformer.learn.exercises import folder, notebook
from npformer.learn.exercises.process import check_file
from npformer.learn.exercises.solution import solution, table
from npformer.learn.exercises.table import NAMES, every, exercise, stem
from tests.learn.exercises.answers import with_body

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def prints(capsys, monkeypatch):
    """Run the command, expect a status, and return what is on stdout."""
    monkeypatch.setenv("COLUMNS", "100")  # the page's width, whatever the terminal's

    def run(*words, status=0):
        assert cli.main(["exercises", *map(str, words)]) == status
        return capsys.readouterr().out

    return run


def fails(capsys, *words):
    """Run the command, expect a mistake in the call, and return what is on stderr."""
    try:
        status = cli.main(["exercises", *map(str, words)])
    except SystemExit as end:
        status = end.code
    assert status == 2
    return capsys.readouterr().err


def answer(place, name, text):
    path = place / f"{stem(name)}.py"
    path.write_text(text, "utf-8")
    return path


def test_from_start_to_check(prints, tmp_path):
    place = tmp_path / "mine"
    assert f"27 files written to {place}" in prints("start", place)
    out = prints("check", place, status=1)
    assert len(re.findall(r"^\d\d_\w+ +not begun$", out, re.MULTILINE)) == 27
    assert "0 of 27 are right. Next: 01_linear_backward" in out
    for name in ("linear_backward", "relu_backward"):
        answer(place, name, exercise(name).solution)
    answer(place, "softmax_backward", with_body("softmax_backward", "return y * dy"))
    out = prints("check", place, status=1)
    assert re.search(r"^01_linear_backward +right$", out, re.MULTILINE)
    assert re.search(r"^05_softmax_backward +wrong: dx: the dependence through", out, re.MULTILINE)
    assert "2 of 27 are right. Next: 02_conv1d_backward" in out
    assert prints("check", place, "01_linear_backward.py") == "01_linear_backward  right\n"


@pytest.mark.slow
def test_in_the_folder_names_alone_will_do(prints, begun, monkeypatch, tmp_path_factory):
    answer(begun, "relu_backward", exercise("relu_backward").solution)
    monkeypatch.chdir(begun)
    right = "03_relu_backward  right\n"
    for words in (["relu_backward"], ["3"], ["03_relu_backward.py"], [".", "3"]):
        assert prints("check", *words) == right
    assert "1 of 2 are right" in prints("check", "softmax_backward", "relu_backward", status=1)
    assert "1 of 27 are right" in prints("check", status=1)
    assert "Hint 1 of 3 for relu_backward" in prints("hint", "relu_backward")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert prints("check", begun / "03_relu_backward.py") == right


@pytest.mark.slow
def test_an_encoder_finds_the_files_beside_it_from_anywhere(prints, solved, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    out = prints("check", solved, "own_encoder")
    expected = r"27_own_encoder  right: 9\d\.\d% of 360 digits that it has not seen\n"
    assert re.fullmatch(expected, out)


def test_a_folder_that_is_called_like_an_exercise_is_the_folder(prints, begun, monkeypatch):
    folder.start(begun / "relu_backward", ["softmax_backward"])
    monkeypatch.chdir(begun)
    out = prints("check", "relu_backward", "softmax_backward", status=1)
    assert out == "05_softmax_backward  not begun\n"
    out = prints("check", "relu_backward", status=1)
    assert re.search(r"^01_linear_backward +no file$", out, re.MULTILINE)


def test_a_right_answer_that_is_not_by_hand_ends_with_status_0(prints, begun):
    body = "from npformer.functional import relu_backward as f\nreturn f(dy, x)"
    answer(begun, "relu_backward", with_body("relu_backward", body))
    out = prints("check", begun, "relu_backward")
    assert out.startswith("03_relu_backward  right, but not by hand: it calls npformer.functional.")


def test_a_file_that_is_gone_is_named(prints, begun):
    (begun / "03_relu_backward.py").unlink()
    assert prints("check", begun, "relu_backward", status=1) == "03_relu_backward  no file\n"


@pytest.mark.slow
def test_notebooks_are_marked_likewise(prints, tmp_path):
    assert "27 files written" in prints("start", tmp_path, "--notebooks")
    path = tmp_path / "03_relu_backward.ipynb"
    for body, status, expected in [
        ("return dy * (x > 0)", 0, "03_relu_backward.ipynb right"),
        ("return dx", 1, "line 4 of code cell 3 failed, `return dx`: NameError"),
    ]:
        path.write_text(notebook.from_source(with_body("relu_backward", body), "relu_backward"))
        out = prints("check", tmp_path, "relu_backward", status=status)
        assert expected in " ".join(out.split())
    assert prints("check", tmp_path, "1", status=1) == "01_linear_backward.ipynb  not begun\n"


@pytest.mark.slow
def test_what_a_file_prints_is_shown(prints, begun):
    body = "print('of shape', x.shape)\nreturn dy * (x > 0)"
    answer(begun, "relu_backward", with_body("relu_backward", body))
    assert "| of shape (4, 5)\n" in prints("check", begun, "relu_backward")


def test_each_call_prints_the_next_hint(prints, begun):
    hints = exercise("relu_backward").hints
    for number in (1, 2, 3, 3):
        out = prints("hint", begun, "relu_backward")
        assert f"Hint {number} of 3" in out
        assert " ".join(hints[number - 1].split()) in " ".join(out.split())
        assert ("npformer exercises solution relu_backward" in out) == (number == 3)


def test_a_solution_is_printed_with_its_chapter(prints):
    out = prints("solution", "relu_backward")
    assert "return dy * (x > 0.0)" in out
    assert "docs/chapters/activations.md" in out


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_shows_all_lines_of_the_blanks(name):
    text = solution(exercise(name))
    for lines in exercise(name).parts():
        for line in lines.splitlines():
            assert line.strip() in text
    for right in (bug.right for bug in exercise(name).breaks):
        assert right.splitlines()[0].strip() in text


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_says_why_it_is_right(name):
    assert exercise(name).why in solution(exercise(name))


def test_list_names_all(prints):
    out = prints("list")
    assert [line.split()[0] for line in out.splitlines()] == [stem(name) for name in NAMES]
    assert prints("list", "--markdown") == f"{table()}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "ACTION"),
        ("begin", "'begin' is unknown; expected start, check, hint, solution, list"),
        ("start", "the following arguments are required: DIR"),
        ("start {} nope", "no exercise is called 'nope'"),
        ("start {} --force", "expected the names of the exercises to restore"),
        ("start {} --notebook", "npformer exercises start: --notebook is unknown. Did you mean"),
        ("start {}/01_linear_backward.py", "01_linear_backward.py"),
        ("check", "holds no exercises; `npformer exercises start ."),
        (
            "check sofmax_backward",
            "exercises: no exercise is called 'sofmax_backward'. Did you mean 'softmax_",
        ),
        ("check sofmax_backward", "sofmax_backward is not a folder (`npformer exercises start"),
        ("check softmax", "no exercise is called 'softmax'. Did you mean 'softmax_backward'?"),
        ("check softmax_backward", "holds no exercises"),
        ("check {}/nowhere/5", "is not a folder"),
        ("check {}/nowhere", "nowhere is not a folder (`npformer exercises start /"),
        ("check {}/empty", "holds no exercises; `npformer exercises start"),
        ("check {} softmax_backwards", "Did you mean 'softmax_backward'?"),
        ("check {} --seconds 0", "--seconds is 0.0; expected"),
        ("hint {}", "0 exercises are named; expected one, as in: hint 5"),
        ("hint {} 1 2", "2 exercises are named"),
        ("hint {} 30", "no exercise is called '30'; `npformer exercises list` names all"),
        ("hint {} 0", "no exercise is called '0'; `npformer exercises list` names all"),
        ("hint {}/empty 1", "holds no exercises"),
        ("solution", "the following arguments are required: NAME"),
        ("solution linear", "no exercise is called 'linear'. Did you mean 'linear_backward'?"),
        ("solution nope", "no exercise is called 'nope'; `npformer exercises list` names"),
    ],
)
def test_a_mistake_in_the_call_is_explained(capsys, monkeypatch, begun, words, message):
    (begun / "empty").mkdir()
    monkeypatch.chdir(begun / "empty")
    assert message in fails(capsys, *words.format(begun).split())


@pytest.fixture
def endless_loop(begun):
    text = with_body("relu_backward", "while True:\n    print('still here')")
    return check_file("relu_backward", answer(begun, "relu_backward", text), seconds=1.0)


def test_an_endless_loop_is_stopped_with_its_line(endless_loop):
    assert endless_loop.state == "wrong"
    (message,) = endless_loop.says
    assert re.search(r"stopped after 1 seconds; it was at line 3[12], `", message)
    assert message.endswith("Does a loop never end?")


def test_little_is_kept_of_what_an_endless_loop_prints(endless_loop):
    assert endless_loop.printed.startswith("still here")
    assert len(endless_loop.printed) < 3000


@pytest.mark.slow
def test_an_endless_loop_outside_functions_is_explained(begun):
    path = answer(begun, "relu_backward", "while True: pass\n")
    (message,) = check_file("relu_backward", path, seconds=1.0).says
    assert "it was at line 1, `while True: pass`" in message


@pytest.mark.slow
def test_an_answer_that_ends_its_process_is_explained(begun):
    text = "import os, sys\nprint('goodbye', file=sys.__stderr__, flush=True)\nos._exit(3)\n"
    (message,) = check_file("relu_backward", answer(begun, "relu_backward", text)).says
    assert message == "its process ended with status 3 before it was marked: goodbye"


def test_a_file_that_python_cannot_read_gets_words(begun):
    text = with_body("relu_backward", "return dy *")
    (message,) = check_file("relu_backward", answer(begun, "relu_backward", text)).says
    assert message == "Python cannot read line 31, `return dy *`: invalid syntax"
    path = begun / "03_relu_backward.py"
    path.write_bytes(b"\xff\xfe")
    (message,) = check_file("relu_backward", path).says
    assert "not text in UTF-8" in message


@pytest.mark.slow
def test_what_one_file_does_to_numpy_the_next_does_not_see(prints, begun):
    for name in ("relu_backward", "softmax_backward"):
        text = exercise(name).solution + "\nprint(hasattr(np, 'left'))\nnp.left = 1\n"
        answer(begun, name, text)
    out = prints("check", begun, "relu_backward", "softmax_backward")
    assert out.count("| False\n") == out.count("right\n") == 2


def test_the_table_of_the_page_is_the_packages_own():
    page = (DOCS / "exercises.md").read_text("utf-8")
    written = re.search(
        r"<!-- begin exercises: written by `(?P<command>[^`]+)` -->\n+(?P<table>.*?)\n+<!-- end",
        page,
        re.DOTALL,
    )
    assert written["command"] == "npformer exercises list --markdown"
    assert written["table"] == table()


@pytest.mark.slow
def test_the_messages_on_the_page_are_real(prints, begun):
    page = (DOCS / "exercises.md").read_text("utf-8")
    for body, shown in re.findall(r"```py\n(    .*?)\n```\n\n```text\n(.*?)\n```", page, re.DOTALL):
        answer(begun, "softmax_backward", with_body("softmax_backward", body))
        out = prints("check", begun, "softmax_backward", status=0 if "  right" in shown else 1)
        assert out.rstrip() == shown


@pytest.mark.slow
def test_the_page_says_what_a_right_encoder_on_a_wrong_file_is_told(prints, tmp_path):
    folder.start(tmp_path)
    for name in NAMES:
        text = exercise(name).solution
        if name == "adam_update":
            text = text.replace("m / (1.0 - beta1**t)", "m")
        answer(tmp_path, name, text)
    out = re.sub(r"9\d\.\d%", "9x%", prints("check", tmp_path, "own_encoder"))
    page = (DOCS / "exercises.md").read_text("utf-8")
    assert f"```text\n{out}```" in re.sub(r"9\d\.\d%", "9x%", page)


def test_each_page_that_an_exercise_names_will_be_there():
    chapters = {one.page for one in every()}
    assert {"museum.md", "extending.md"} <= chapters
    there = [page for page in chapters if (DOCS / page).exists()]
    assert len(there) >= 2
    if (DOCS / "chapters").is_dir():
        assert sorted(chapters - set(there)) == []
