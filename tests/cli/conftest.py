"""Calls of the command line in this process, and models for them."""

import argparse
import json

import pytest

import npformer as nf
from npformer import cli
from npformer.cli.program import make_parser
from npformer.cli.training import Training

TINY = [f"--{n}" for n in ("epochs=1", "d-model=16", "heads=2", "d-ff=16", "layers=1", "quiet")]


def run(*words):
    return cli.main([str(word) for word in words])


def train(folder, *words):
    """Train briefly on one split of digits, and return the folder."""
    assert run("train", "digits", *TINY, "--split", "ordered", "--out", folder, *words) == 0
    return folder


def subparsers(parser):
    """Return the parsers of a parser's commands, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def parsers_of_commands():
    """Return the parser of each command, and of each action of one: "exercises start"."""
    parsers = {}
    for name, parser in subparsers(make_parser()).items():
        parsers[name] = parser
        for action, inner in subparsers(parser).items():
            parsers[f"{name} {action}"] = inner
    return parsers


def names(folder):
    return {path.name for path in folder.iterdir()}


def metrics_of(folder):
    return json.loads((folder / "metrics.json").read_text())


@pytest.fixture
def prints(capsys):
    """Run, expect a status, and return what is on stdout."""

    def check(*words, status=0):
        assert run(*words) == status
        return capsys.readouterr().out

    return check


@pytest.fixture
def fails(capsys):
    """Run, expect status 2, and return the one line on stderr."""

    def check(*words):
        assert run(*words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"npformer {words[0]}: ")
        assert err.count("\n") == 1
        return err

    return check


@pytest.fixture
def no_curves(monkeypatch):
    """Draw no curves, which takes longer than the training."""
    monkeypatch.setattr(Training, "draw_curves", lambda *arguments: "no curves")


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return the folder of a brief training on both splits of digits."""
    folder = tmp_path_factory.mktemp("digits")
    assert run("train", "digits", *TINY, "--out", folder) == 0
    return folder


@pytest.fixture
def tokens(tmp_path, small_model):
    """Return the file of a model that takes token ids, and the model."""
    model = small_model(dtype="float32")
    nf.save(model, tmp_path / "tokens.safetensors")
    return tmp_path / "tokens.safetensors", model
