"""npformer play: what it says where the libraries of its server are missing."""

import importlib.util
import sys

import pytest

from npformer.cli.play import LIBRARIES, what_to_type
from npformer.cli.train_task import NEXT
from tests.cli.conftest import run
from tests.needs import NEEDS

INSTALL = 'python -m pip install "npformer[play]"'


@pytest.fixture(params=LIBRARIES)
def missing(request, monkeypatch):
    """Return the name of a library, which cannot be imported."""
    monkeypatch.setitem(sys.modules, request.param, None)
    return request.param


def test_without_the_extra_a_training_ends_with_what_to_type_first(missing):
    assert what_to_type() == f"{INSTALL} && npformer play"


def test_with_the_extra_a_training_ends_with_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    assert what_to_type() == "npformer play"


def test_a_training_names_the_command_last():
    assert NEXT.format("runs/x", "digits", "fourier", "THE COMMAND").endswith("  THE COMMAND")


def test_the_page_without_the_extra_says_what_to_type(missing, tmp_path, monkeypatch, capsys):
    if missing == "uvicorn":
        pytest.importorskip("starlette", reason=NEEDS["starlette"])
    monkeypatch.chdir(tmp_path)
    assert run("play", "--no-open") == 2
    message = capsys.readouterr().err
    assert f"npformer play needs the package {missing}" in message
    assert message.rstrip().endswith(f"install it: {INSTALL}")
