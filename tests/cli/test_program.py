"""The program: help, mistakes on the command line, and errors that commands share."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import npformer as nf
from npformer.cli import evaluate
from npformer.cli.common import counted
from npformer.cli.options import Number
from npformer.cli.program import make_parser
from tests.cli.conftest import TINY, run, subparsers
from tests.needs import NEEDS

SCRIPT = Path(sys.executable).with_name("npformer")
COMMANDS = subparsers(make_parser())


@pytest.mark.parametrize("program", ["npformer", "npformer.cli", SCRIPT], ids=str)
def test_the_program_helps(program):
    if program == SCRIPT and not SCRIPT.exists():
        pytest.skip("the script npformer is not beside this Python")
    if program == SCRIPT:
        command = [program, "--help"]
    else:
        command = [sys.executable, "-m", program, "--help"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")
    for name in ("train", "evaluate", "predict", "look", "gradcheck", "bench", "doctor"):
        assert name in process.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_its_usage(command, capsys):
    with pytest.raises(SystemExit) as end:
        run(command, "--help")
    assert end.value.code == 0
    assert f"usage: npformer {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_every_option(command):
    for action in COMMANDS[command]._actions:
        assert action.help, action.option_strings or action.dest


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "look", "generate"])
def test_two_dashes_are_the_value_of_the_option_before_them(command, capsys):
    values = 0
    for action in COMMANDS[command]._actions:
        if not action.option_strings or action.nargs == 0:
            continue
        flag = action.option_strings[-1]
        words = [command, "x.csv", f"{flag}=--"]
        if action.choices is not None or isinstance(action.type, Number):
            with pytest.raises(SystemExit):
                make_parser().parse_known_args(words)
            assert flag in capsys.readouterr().err
            continue
        options, _ = make_parser().parse_known_args(words)
        value = getattr(options, action.dest)
        assert value in ("--", Path("--"), ["--"], [Path("--")]), flag
        values += 1
    assert values


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        run("--version")
    assert end.value.code == 0
    assert capsys.readouterr().out == f"npformer {nf.__version__}\n"


def test_the_help_of_train_begins_with_ten_options(capsys):
    shown = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as end:
            run("train", flag)
        assert end.value.code == 0
        out = capsys.readouterr().out
        shown[flag] = set(re.findall(r"^  (--[a-z-]+)", out, re.MULTILINE)) - {"--help-all"}
        assert "npformer train plays.txt" in out
    few, every = shown["--help"], shown["--help-all"]
    assert few < every
    assert len(few) == 10
    assert len(every) == sum(bool(a.option_strings) for a in COMMANDS["train"]._actions) - 2
    with pytest.raises(SystemExit):
        run("train", "--help")
    assert f"{len(every) - 10} more options: npformer train --help-all" in capsys.readouterr().out


@pytest.fixture(params=["train", "evaluate", "predict"])
def words(request, trained, tmp_path):
    """Return the words of a command that computes."""
    train = ["digits", *TINY, "--out", tmp_path / "new"]
    return [request.param, *(train if request.param == "train" else [trained])]


def test_a_missing_gpu_is_one_line(words, monkeypatch, fails, tmp_path):
    monkeypatch.delitem(nf.core.arrays._backends, "cupy", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    line = fails(*words, "--backend", "cupy")
    assert "backend 'cupy' needs CuPy, which cannot be imported here" in line
    assert "pip install" in line
    assert list(tmp_path.iterdir()) == []


def test_tf32_on_a_cpu_is_one_line(words, fails):
    line = fails(*words, "--precision", "tf32")
    assert "precision is 'tf32' and the backend is 'numpy'; expected 'float32'" in line


@pytest.mark.parametrize("command", ["evaluate", "predict", "look"])
def test_what_is_no_model_is_named(tmp_path, trained, fails, command):
    table = tmp_path / "a.csv"
    table.write_text("text,label\nsoup,food\n")
    assert f"{table} is a file of data; expected a model first" in fails(command, table)
    shutil.copytree(trained, tmp_path / "runs" / "digits")
    message = fails(command, tmp_path / "runs")
    assert f"is not a run, but runs are in it, such as {tmp_path / 'runs' / 'digits'}" in message


def test_a_model_may_have_the_name_of_a_text(tmp_path, trained, prints):
    shutil.copy(trained / "model.safetensors", tmp_path / "model.txt")
    assert prints("evaluate", tmp_path / "model.txt").startswith("digits")


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_damaged_model_is_reported(tmp_path, trained, fails, command):
    data = (trained / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(data[:1000])
    assert "is not a whole safetensors file" in fails(command, tmp_path)


@pytest.mark.parametrize("notes", [{}, {"task": "digits"}], ids=str)
@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_model_without_a_task_is_refused(tokens, fails, command, notes):
    nf.save(tokens[1], tokens[0], notes=notes)
    assert "does not say which task, split and seed" in fails(command, tokens[0])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["play", "-"], "'-' does not exist; expected a table, a text, a folder with"),
        (["play", ""], "'' is neither a file nor a folder; expected a table"),
        (["play", "pipe"], "'pipe' is neither a file nor a folder; expected a table"),
        (["play", "runs/run-2", "--export", "a.html"], "a text, runs/run-1, or one of the tasks"),
        (["play", "file"], "'file' does not exist; expected a table, a text"),
        (["play", "fil"], "reverse, sort, add\n"),  # which is no task to name
        (["play", "--export", "a.html"], "no run in runs/play yet (no model"),
        (["play", "digits", "--export", "a.html"], "--export is given with digits; expected the"),
        (["play", "a.csv", "--export", "a.html"], "--export is given with a.csv; expected the"),
    ],
)
def test_what_a_page_cannot_show_is_named(tmp_path, monkeypatch, fails, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("text,label\nsoup,food\n")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "runs" / "run-1").mkdir(parents=True)
    before = {*tmp_path.rglob("*")}
    assert said in fails(*words)
    assert {*tmp_path.rglob("*")} == before


def test_a_page_whose_first_run_cannot_begin_says_so(tmp_path, monkeypatch, capsys):
    pytest.importorskip("starlette", reason=NEEDS["starlette"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "play" / "shown.json").mkdir(parents=True)
    with ThreadPoolExecutor(1) as pool:  # the browser of other tests has a loop running here
        assert pool.submit(run, "play", "digits", "--no-open").result() == 2
    assert capsys.readouterr().err == "npformer play: runs/play/shown.json: Is a directory\n"


RESULTS = pytest.mark.parametrize(
    "command",
    [
        "play --export",
        "bench --json",
        "doctor --report",
    ],
)


@RESULTS
def test_results_replace_no_file_of_a_run(command, tmp_path, fails):
    name, option = command.split()
    for ending in (".safetensors", ".jsonl" if name == "bench" else ".json"):
        place = tmp_path / f"a{ending}"
        place.write_text("precious")
        assert f"{option} {place} has the ending of a file of a run" in fails(name, option, place)
        assert place.read_text() == "precious"


@RESULTS
def test_results_need_a_folder(command, tmp_path, fails):
    name, option = command.split()
    place = tmp_path / "no" / "a.txt"
    message = f"{option} {place} is in a folder that does not exist; create it first"
    assert message in fails(name, option, place)


def test_ctrl_c_is_one_word(trained, capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "evaluate", interrupted)
    assert run("evaluate", trained) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.parametrize(
    ("n", "kind", "words"),
    [(1, "texts", "1 text"), (2000, "texts", "2,000 texts"), (1, "series", "1 series")],
)
def test_one_of_a_kind_is_told_as_one(n, kind, words):
    assert counted(n, kind) == words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("train --learning-rate 3", "--learning-rate is unknown. Did you mean '--lr'?"),
        pytest.param("train --epoch=3", "--epoch is unknown. Did you mean '--epochs'?"),
        pytest.param("train --lr 3 -- --speed", "argument TASK|FILE: '--speed' is neither"),
    ],
)
def test_the_value_of_an_unknown_option_is_not_blamed(words, expected, capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_known_args(words.split())
    assert capsys.readouterr().err.startswith(f"npformer train: {expected}")
