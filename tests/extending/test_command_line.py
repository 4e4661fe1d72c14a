"""--plugin: the other options can use the names that a module registers."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import npformer as nf
from npformer import cli
from npformer.cli.plugins import load_plugins
from npformer.layers import ACTIVATIONS

PLUGIN = Path(__file__).with_name("plugin.py")
ROOT = PLUGIN.parents[2]
TINY = ["--epochs=1", "--d-model=16", "--heads=2", "--d-ff=16", "--quiet", "--split=ordered"]


def npformer(*words, folder=ROOT):
    command = [sys.executable, "-m", "npformer", *map(str, words)]
    env = {"PYTHONPATH": str(ROOT), "PATH": "", "MPLBACKEND": "agg", "NPFORMER_LOOPS": "0"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    process = npformer(
        "train",
        "digits",
        *TINY,
        "--mixer",
        "spatial(gain=0.5),local(reach=2)",
        "--activation",
        "swish(beta=1.5)",
        "--ffn",
        "glu",
        "--initializer",
        "orthogonal(gain=1.0)",
        "--pooling",
        "largest",
        "--output",
        "focal(gamma=1.0)",
        "--schedule",
        "straight",
        "--plugin",
        PLUGIN,
        "--out",
        folder,
    )
    assert (process.returncode, process.stderr) == (0, "")
    return folder


@pytest.mark.processes
def test_everything_can_be_named_on_the_command_line(trained):
    metrics = json.loads((trained / "metrics.json").read_text())
    assert metrics["plugins"] == [str(PLUGIN)]
    assert metrics["mixer"] == ["spatial(gain=0.5)", "local(reach=2)"]
    assert metrics["config"]["activation"] == "swish(beta=1.5)"
    assert metrics["training"]["schedule"] == "straight"
    assert metrics["training"]["label_smoothing"] == 0.0
    assert nf.read_notes(trained / "model.safetensors")["plugins"] == [str(PLUGIN)]


@pytest.mark.processes
def test_a_model_says_which_plugin_it_needs(trained):
    process = npformer("evaluate", trained)
    assert process.returncode == 2
    assert "needs the mixer 'spatial' and the mixer 'local' and the" in process.stderr
    assert f"name them again: --plugin {PLUGIN}" in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.processes
def test_a_model_loads_with_its_plugin(trained):
    process = npformer("evaluate", trained, "--plugin", PLUGIN)
    assert (process.returncode, process.stderr) == (0, "")
    metrics = json.loads((trained / "metrics.json").read_text())["splits"]["ordered"]
    assert f"accuracy {metrics['test_accuracy']:.4f}" in process.stdout


@pytest.mark.processes
def test_a_plugin_may_be_named_by_its_module(trained, tmp_path):
    out = tmp_path / "labels.npy"
    process = npformer(
        "predict", trained, "--samples", 3, "--out", out, "--plugin", "tests.extending.plugin"
    )
    assert process.returncode == 0
    assert np.load(out).shape == (3,)


@pytest.mark.slow
def test_gradcheck_checks_what_a_plugin_registers():
    process = npformer("gradcheck", PLUGIN)
    assert (process.returncode, process.stderr) == (0, "")
    for name in (
        "activation swish",
        "network glu",
        "pooling largest",
        "mixer local",
        "mixer nearby",
        "mixer spatial",
        "loss focal",
        "loss huber",
    ):
        assert f"{name}: registered" in process.stdout
    assert "0 wrong" in process.stdout


@pytest.fixture
def here(tmp_path, monkeypatch, empty):
    """Make an empty folder the current one, and forget the modules that are imported from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


GOOD = """
import npformer
@npformer.layers.ACTIVATIONS.register("twice")
class Twice(npformer.Layer):
    def __init__(self, by=2.0):
        self.by = float(by)
    def forward(self, x, context):
        return self.by * x, None
    def backward(self, dy, cache, gradients):
        return self.by * dy
"""


def train(*words):
    return ["train", "digits", *TINY, "--layers=1", "--out", "out", *words]


@pytest.mark.usefixtures("no_curves")
def test_a_module_in_the_current_folder_is_found(here):
    (here / "mine.py").write_text(GOOD)
    assert cli.main(train("--plugin", "mine", "--activation", "twice(by=3)")) == 0
    model = nf.load("out/model.safetensors")
    assert model.encoder.blocks[0].feed_forward.activation.by == 3.0
    # In the same process, the module is not run again under another name.
    assert cli.main(["predict", "out", "--plugin", "mine.py", "--samples", "1"]) == 0
    del ACTIVATIONS["twice"]
    with pytest.raises(nf.CheckpointError) as error:
        nf.load("out/model.safetensors")
    assert "The file needs the activation 'twice': before nf.load" in str(error.value)
    assert "import mine; on the command line, --plugin mine." in str(error.value)


def test_a_plugin_can_import_its_neighbours(here):
    (here / "more").mkdir()
    (here / "more" / "beside.py").write_text(GOOD)
    (here / "more" / "random.py").write_text("import beside\n")  # does not replace Python's
    assert load_plugins(["more/random.py"]) == [str(here / "more" / "random.py")]
    assert "twice" in ACTIVATIONS
    assert sys.modules["random"] is random


@pytest.mark.parametrize("command", ["train", "evaluate", "predict"])
def test_a_module_that_is_not_there_is_named(here, fails, command):
    words = {"train": train()[1:]}.get(command, ["out"])
    line = fails(command, *words, "--plugin", "nowhere.mine")
    assert "--plugin nowhere.mine: there is no module nowhere; expected one that Python" in line
    assert "--plugin nowhere/mine.py" in line
    assert list(here.iterdir()) == []


TAKEN = "import npformer\nnpformer.MIXERS.register('fourier', npformer.mixers.Identity)\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nowhere.py", None, "--plugin nowhere.py: there is no such Python file; expected one"),
        ("a-b", None, "--plugin is 'a-b'; expected the dotted name of a module"),
        ("", None, "--plugin is ''; expected the dotted name of a module"),
        ("mine.py", "x = 1\n1 / 0\n", "importing it raised ZeroDivisionError: division by zero"),
        ("mine", "x = 1\n1 / 0\n", "importing it raised ZeroDivisionError: division by zero"),
        ("mine", "import torchh\n", "importing it raised ModuleNotFoundError: No module named 'to"),
        ("mine.py", "x = = 1\n", "importing it raised SyntaxError: invalid syntax"),
        ("mine", "raise SystemExit(3)\n", "importing it raised SystemExit: 3"),
        ("mine.py", TAKEN, "ValueError: the mixer 'fourier' is already registered"),
    ],
)
def test_a_plugin_that_cannot_be_imported_says_why(here, fails, name, text, message):
    if text is not None:
        (here / "mine.py").write_text(text)
    line = fails(*train("--plugin", name))
    assert message in line
    if "raised" in message:
        assert "mine.py, line" in line
    assert not (here / "out").exists()


def test_a_module_that_failed_is_run_again(here, fails):
    (here / "mine.py").write_text("1 / 0\n")
    fails(*train("--plugin", "mine.py"))
    (here / "mine.py").write_text(GOOD)
    load_plugins(["mine.py"])
    assert "twice" in ACTIVATIONS


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--activation=twice(bye=1)", "the activation 'twice' has no option 'bye'; expected b"),
        ("--activation=twise", "Did you mean 'twice'?"),
        ("--mixer=local", "mixer is 'local'; expected one of 'attention', "),
        ("--schedule=straight", "--schedule is 'straight'; expected one of 'constant', "),
        ("--pooling=largest", "pooling is 'largest'; expected one of 'mean', "),
        ("--output=focal", "output is 'focal'; expected one of 'softmax', "),
    ],
)
def test_a_name_that_no_plugin_registers_is_refused(here, fails, word, message):
    (here / "mine.py").write_text(GOOD)
    assert message in fails(*train("--plugin", "mine.py", word))
    assert not (here / "out").exists()


def test_what_needs_an_option_is_reported_as_not_checked(here, capsys):
    (here / "mine.py").write_text(GOOD.replace("by=2.0", "by"))
    assert cli.main(["gradcheck", "mine.py"]) == 2
    err = capsys.readouterr().err
    assert "activation twice is not checked, because it needs options: the" in err
    assert "needs by; expected 'twice(by=...)'" in err


@pytest.mark.slow
def test_a_wrong_gradient_of_a_plugin_fails(here, capsys):
    (here / "mine.py").write_text(GOOD.replace("return self.by * dy", "return dy"))
    assert cli.main(["gradcheck", "mine.py"]) == 1
    assert "activation twice: registered\n    WRONG" in capsys.readouterr().out


@pytest.mark.usefixtures("no_curves")
def test_options_of_a_mixer_are_in_the_name_of_the_folder(here):
    (here / "mine.py").write_text(
        "import npformer\n"
        "@npformer.MIXERS.register('mine')\n"
        "class Mine(npformer.mixers.Identity):\n"
        "    @classmethod\n"
        "    def build(cls, settings, *, seed, dtype, a=1, b=''):\n"
        "        return cls()\n"
    )
    words = ["train", "digits", *TINY, "--plugin", "mine", "--mixer", "mine(a=2, b='x y'),identity"]
    assert cli.main(words) == 0
    assert [path.name for path in (here / "runs").iterdir()] == ["digits-mine_a=2_b=_x_y-identity"]
