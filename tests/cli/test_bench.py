"""npformer bench: its figures, its table, and its errors."""

import json

import numpy as np
import pytest

from npformer.cli import speed
from npformer.core import Context
from tests.cli.conftest import run

TINY = speed.Workload("T", 4, 6, 8, 16, 1)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(speed.WORKLOADS, "T", TINY)
    monkeypatch.setattr(speed, "sgemm_peak", lambda: 100.0)


def test_each_workload_and_mixer_is_measured(tiny):
    speeds = list(speed.measure(["T", "T"], ["fourier", "attention"], seconds=0.001))
    assert [(s.workload, s.mixer) for s in speeds] == 2 * [("T", "fourier"), ("T", "attention")]
    for s in speeds:
        assert min(s.step_ms, s.predict_ms, s.plain_ms) > 0.0
        assert s.tokens_a_second == pytest.approx(24 / s.step_ms * 1e3)


@pytest.mark.parametrize("mixer", speed.MEASURED)
def test_products_are_three_times_those_of_a_forward_pass(mixer, monkeypatch):
    """Count the operations of every call to matmul in a forward pass of the plain layers."""
    counted = []

    class Counting(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            arrays = [np.asarray(x) if isinstance(x, Counting) else x for x in inputs]
            if "out" in options:
                options["out"] = tuple(np.asarray(x) for x in options["out"])
            y = getattr(ufunc, method)(*arrays, **options)
            if ufunc is np.matmul:
                counted.append(2 * y.size * arrays[0].shape[-1])
            return y.view(Counting) if isinstance(y, np.ndarray) else y

    model = TINY.model(mixer)
    for _, layer in model.layers():
        for _, child in layer.children():
            buffer = getattr(child, "_buffer", None)
            if buffer is not None:
                buffer.flat = buffer.flat.view(Counting)
    x = np.random.default_rng(0).integers(speed.VOCABULARY, size=(TINY.batch, TINY.length))
    model.forward(x, Context(keep=False))
    assert 3 * sum(counted) == TINY.products(mixer)


def test_the_table_shows_ratios():
    speeds = [speed.Speed("S", "fourier", 10.0, 4.0, 25.0, 2e5, 50.0)]
    with_peak, without = speed.table(speeds, 200.0), speed.table(speeds, None)
    for word in ("fourier", "2.5x", "25%"):
        assert word in with_peak
    assert "of peak" not in without


def test_the_peak_is_a_rate():
    assert 0.1 < speed.sgemm_peak(size=64, tries=2) < 1e5


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
    assert written["peak_gflops"] == 100.0
    assert written["figures"][0]["mixer"] == "attention"
