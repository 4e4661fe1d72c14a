"""npformer bench: its figures, its table, and its errors."""

import json

import pytest

import npformer as nf
from npformer.cli import speed
from tests.cli.conftest import run

TINY = speed.Workload(4, nf.EncoderConfig(8, 1, 4, 16, max_len=6))


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(speed.WORKLOADS, "T", TINY)


def test_each_workload_and_mixer_is_measured(tiny):
    for mixer in ("fourier", "attention"):
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
def test_a_mistake_is_explained(words, message, capsys):
    assert run("bench", *words) == 2
    assert message in capsys.readouterr().err


def test_the_command_prints_a_table_and_writes_the_figures(tiny, tmp_path, prints):
    file = tmp_path / "figures.json"
    words = ("--workload", "T", "--mixer", "attention", "--seconds", "0.001", "--json", file)
    assert "attention" in prints("bench", *words)
    written = json.loads(file.read_text())
    assert written["figures"][0]["mixer"] == "attention"
