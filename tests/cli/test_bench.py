"""npformer bench: its figures, its table, and its errors."""

import json

import pytest

from npformer.cli import speed
from tests.cli.conftest import run

TINY = speed.Workload("T", 4, 6, 8, 16, 1)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(speed.WORKLOADS, "T", TINY)


def test_each_workload_and_mixer_is_measured(tiny):
    speeds = list(speed.measure(["T", "T"], ["fourier", "attention"], seconds=0.001))
    assert [(s.workload, s.mixer) for s in speeds] == 2 * [("T", "fourier"), ("T", "attention")]
    for s in speeds:
        assert min(s.step_ms, s.predict_ms, s.plain_ms) > 0.0
        assert s.tokens_a_second == pytest.approx(24 / s.step_ms * 1e3)


def test_the_table_shows_ratios():
    table = speed.table([speed.Speed("S", "fourier", 10.0, 4.0, 25.0, 2e5)])
    assert "fourier" in table
    assert "2.5x" in table


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
