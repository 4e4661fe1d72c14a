"""Closed or full output, no home, other encodings: the command line runs, and loses nothing."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import npformer
import npformer as nf
from tests.sampling import mark_others

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it takes a POSIX shell")

processes = pytest.mark.processes

ROOT = Path(npformer.__file__).parents[1]
SIZES = [f"--{name}" for name in ("epochs=1", "d-model=8", "heads=1", "d-ff=8", "layers=1")]
TRAIN = ["train", "digits", *SIZES, "--split", "ordered"]

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


def npformer_(*words, streams="", python=(), prefix="", cwd=None, **environment):
    """Run the command line in a shell that redirects its streams."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    variables |= {"PYTHONPATH": str(ROOT), **environment}
    shell = f'{prefix} "$@" {streams}'
    command = ["sh", "-c", shell, "sh", sys.executable, *python, "-m", "npformer", *map(str, words)]
    environment = {name: value for name, value in variables.items() if value is not None}
    return subprocess.run(
        command, capture_output=True, timeout=120, check=False, env=environment, cwd=cwd
    )


def trained(folder):
    """Whether a training's files are there, and its model can be loaded."""
    assert nf.load(folder / "model.safetensors").n_parameters() > 0
    return {"history.json", "metrics.json"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    "streams",
    [
        "<&- >&- 2>&-",
        pytest.param(">&-", marks=processes),
        pytest.param("2>&-", marks=processes),
        pytest.param(">/dev/full 2>&1", marks=[processes, needs_full]),
        pytest.param("| true", marks=processes),
    ],
)
def test_a_training_runs_whatever_its_streams_are(tmp_path, streams):
    process = npformer_(*TRAIN, "--out", tmp_path / "run", streams=streams)
    assert process.returncode == 0
    assert b"Traceback" not in process.stderr + process.stdout
    assert b"Exception ignored" not in process.stderr + process.stdout
    assert trained(tmp_path / "run")


SURROUNDINGS = {
    "a poor terminal, without a home": {"TERM": "dumb", "HOME": None, "MPLCONFIGDIR": None},
    "ASCII, with a home that is not there": {"PYTHONIOENCODING": "ascii", "HOME": "/nonexistent/x"},
    "the language C, with warnings as errors": {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "python": ["-W", "error", "-W", "ignore::DeprecationWarning"],  # of old dependencies
    },
    "a page of codes, with files for nobody else": {
        "PYTHONIOENCODING": "cp1252",
        "prefix": "umask 077;",
    },
    "a folder that was removed, without docstrings and asserts": {
        "prefix": 'mkdir gone; cd gone; rmdir "$PWD";',
        "python": ["-OO"],
    },
}


@pytest.mark.parametrize(
    "where", mark_others(["a page of codes, with files for nobody else"], SURROUNDINGS, processes)
)
def test_a_training_runs_in(tmp_path, where):
    folder = tmp_path / "läuft →"
    process = npformer_(*TRAIN, "--out", folder, cwd=tmp_path, **SURROUNDINGS[where])
    assert process.returncode == 0, process.stderr
    assert b"test accuracy" in process.stdout
    assert trained(folder)
    if "umask" in SURROUNDINGS[where].get("prefix", ""):
        written = [path for path in folder.rglob("*") if path.name != ".lock"]  # it holds nothing
        assert {path.stat().st_mode & 0o077 for path in written} == {0}


COMMANDS = "evaluate {}", "predict {}", "gradcheck gelu", "doctor", "bench --help", "--version"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams") / "run"
    assert npformer_(*TRAIN, "--quiet", "--out", folder).returncode == 0
    return folder


@processes
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_with_all_streams_closed(folder, command):
    words = [word.format(folder) for word in command.split()]
    process = npformer_(*words, streams="<&- >&- 2>&-", python=["-OO"])
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")


def test_an_error_that_nobody_can_see_is_still_a_status(tmp_path):
    for streams in ("2>&-", ">&- 2>&-"):
        process = npformer_("evaluate", tmp_path / "nowhere", streams=streams)
        assert (process.returncode, process.stdout) == (2, b"")


@processes
@needs_full
def test_results_that_cannot_be_written_are_an_error(folder):
    """Unlike a training's, whose results are in files."""
    process = npformer_("evaluate", folder, streams=">/dev/full")
    assert (process.returncode, process.stderr.count(b"\n")) == (2, 1)
    assert b"No space left" in process.stderr


FIT = """
import sys
import numpy as np, npformer as nf
config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=1, d_ff=8, max_len=6)
model = nf.SequenceClassifier(config, 2, vocab_size=7)
x = np.arange(72).reshape(12, 6) % 7
history = nf.fit(model, (x, x[:, 0] % 2), epochs=30, batch_size=4)
sys.exit(len(history.train_loss))
"""


@pytest.mark.parametrize(
    "streams", ["2>&-", pytest.param("2>/dev/full", marks=[processes, needs_full])]
)
def test_a_progress_bar_that_cannot_be_drawn_is_no_reason_to_stop(streams):
    command = ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-W", "error", "-c", FIT]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, timeout=120, check=False, env=environment).returncode == 30


INTERRUPTS = """
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == os.environ.get("AT"):
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
signal.signal(signal.SIGINT, signal.default_int_handler)  # as by hand
"""


@processes
@pytest.mark.parametrize(
    "module", ["npformer.cli.program", "numpy", "starlette.routing", "uvicorn.lifespan.off"]
)
def test_ctrl_c_while_modules_are_imported_ends_the_page_quietly(tmp_path, module):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS)
    (tmp_path / "runs").mkdir()
    place = os.pathsep.join([str(tmp_path), str(ROOT)])
    process = npformer_("play", tmp_path / "runs", "--no-open", PYTHONPATH=place, AT=module)
    serves = module.startswith("uvicorn.")  # it ends as it should
    assert process.returncode in ((0,) if serves else (130, -signal.SIGINT, 128 + signal.SIGINT))
    assert process.stderr in (b"", b"interrupted\n")
    assert process.stdout.startswith(b"http://127.0.0.1:") == serves


@processes
def test_ctrl_c_ends_the_page_without_a_traceback(tmp_path):
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # as by hand
    call = f"from npformer.cli import main; main(['play', {str(tmp_path)!r}, '--no-open'])"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", f"{heard}; {call}"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as page:
        try:
            first = page.stdout.readline()
            port, token = re.search(rb":(\d+)/[?]token=(\S+)", first).groups()
            head = b"POST /api/choices HTTP/1.1\r\nHost: 127.0.0.1:%b\r\nX-Token: %b\r\n"
            slow = b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
            with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as one:
                one.sendall(head % (port, token) + slow)
                assert one.recv(100).startswith(b"HTTP/1.1 100 ")  # the server waits for the rest
                os.killpg(page.pid, signal.SIGINT)
                assert page.communicate(timeout=60)[1] == b""
        finally:
            page.kill()
    assert page.returncode == 0
