"""npformer bench and npformer gradcheck: figures, cases, tables, and errors."""

import json
from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.cli import speed
from npformer.proof import cases
from tests.cli.conftest import run

TINY = speed.Workload(4, nf.EncoderConfig(8, 1, 4, 16, max_len=6))


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(speed.WORKLOADS, "T", TINY)


@pytest.mark.parametrize("mixer", ["fourier", "attention"])
def test_a_mixer_is_measured(tiny, mixer):
    s = speed.measure("T", mixer, "numpy", seconds=0.001)
    assert (s.workload, s.mixer) == ("T", mixer)
    assert min(s.step_ms, s.predict_ms, s.plain_ms) > 0.0
    assert s.tokens_a_second == pytest.approx(24 / s.step_ms * 1e3)


def test_the_table_shows_ratios():
    line = str(speed.Speed("S", "fourier", 10.0, 4.0, 25.0, 2e5))
    assert "fourier" in line
    assert "2.5x" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workload", "Q"], "workload is 'Q'"),
        (["--mixer", "furier"], "Did you mean 'fourier'?"),
        (["--seconds", "0"], "seconds is 0.0"),
    ],
)
def test_a_mistake_is_explained(capsys, words, message):
    assert run("bench", *words) == 2
    assert message in capsys.readouterr().err


TINY_BENCH = ["bench", "--workload", "T", "--mixer", "attention", "--seconds", "0.001"]


def test_the_command_prints_a_table(tiny, prints):
    assert "attention" in prints(*TINY_BENCH)


def test_the_command_writes_the_figures(tiny, tmp_path, prints):
    file = tmp_path / "figures.json"
    prints(*TINY_BENCH, "--json", file)
    assert json.loads(file.read_text())["figures"][0]["mixer"] == "attention"


def test_a_name_selects_cases(prints):
    out = prints("gradcheck", "relu")
    rows = [line for line in out.splitlines() if line.endswith(("passed", "a derivative)"))]
    assert rows
    assert all("relu" in row.lower() for row in rows)
    assert f"{len(rows)} cases, {len(rows)} passed, 0 failed" in out


def test_names_match_whatever_their_case(prints):
    assert prints("gradcheck", "LayerNorm") == prints("gradcheck", "layer_norm")


@pytest.fixture
def wrong_case(monkeypatch):
    """Make a wrong case and a right one all that there are."""

    def check(factor):
        def backward(dy, cache):
            return factor * F.relu_backward(dy, cache)

        return nf.gradcheck((F.relu, backward), np.random.default_rng(0).normal(size=(3, 4)))

    pair = [
        cases.Case("a wrong/relu", "functional", (), partial(check, 3.0)),
        cases.Case("a right relu", "functional", (), partial(check, 1.0)),
    ]
    monkeypatch.setattr(cases, "cases", lambda: pair)


@pytest.mark.usefixtures("wrong_case")
def test_a_wrong_backward_pass_fails(prints):
    out = prints("gradcheck", "relu", status=1)
    assert "2 cases, 1 passed, 1 failed" in out
    assert "x: backward is 3 times the derivative; 3 is the batch size" in out


@pytest.mark.usefixtures("wrong_case")
@pytest.mark.parametrize(
    ("options", "files"),
    [
        ([], {"index.html", "001-a-wrong-relu.html"}),
        (["--verbose"], {"index.html", "001-a-wrong-relu.html", "002-a-right-relu.html"}),
    ],
)
def test_pages_are_written_into_a_folder(prints, tmp_path, options, files):
    prints("gradcheck", "relu", "--report", tmp_path / "pages", *options, status=1)
    assert {file.name for file in (tmp_path / "pages").iterdir()} == files


@pytest.mark.usefixtures("wrong_case")
def test_the_index_links_to_the_page_of_a_wrong_case(prints, tmp_path):
    prints("gradcheck", "relu", "--report", tmp_path, status=1)
    index = (tmp_path / "index.html").read_text()
    assert '<a href="001-a-wrong-relu.html">a wrong/relu</a>' in index
    assert "2 checks, 1 passed, 1 failed" in index


@pytest.mark.usefixtures("wrong_case")
def test_pages_that_are_there_stay(prints, tmp_path):
    (tmp_path / "index.html").write_text("mine")
    prints("gradcheck", "relu", "--report", tmp_path, status=2)
    assert (tmp_path / "index.html").read_text() == "mine"


@pytest.mark.usefixtures("wrong_case")
def test_pages_are_replaced_if_asked(prints, tmp_path):
    (tmp_path / "index.html").write_text("mine")
    prints("gradcheck", "relu", "--report", tmp_path, "--overwrite", status=1)
    assert "gradcheck" in (tmp_path / "index.html").read_text()
