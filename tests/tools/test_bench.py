"""`npformer bench`: what it measures is what it says."""

import json

import numpy as np
import pytest

from npformer.core import Context
from npformer.tools import bench
from npformer.tools.cli import main

TINY = bench.Workload("T", 4, 6, 8, 16, 1)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(bench.WORKLOADS, "T", TINY)
    monkeypatch.setattr(bench, "sgemm_peak", lambda: 100.0)


def test_there_is_a_figure_for_each_workload_and_mixer(tiny):
    figures = list(bench.measure(["T", "T"], ["fourier", "attention"], seconds=0.001))
    assert [(f.workload, f.mixer) for f in figures] == 2 * [("T", "fourier"), ("T", "attention")]
    for f in figures:
        assert f.step_ms > 0.0
        assert f.predict_ms > 0.0
        assert f.plain_ms > 0.0
        assert f.tokens_a_second == pytest.approx(24 / f.step_ms * 1e3)


@pytest.mark.parametrize("mixer", bench.MIXERS)
def test_products_are_those_that_a_forward_pass_makes_three_times(mixer, monkeypatch):
    """Counted at the calls themselves, forward only, with functional alone."""
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
    x = np.random.default_rng(0).integers(bench.VOCABULARY, size=(TINY.batch, TINY.length))
    model.forward(x, Context(keep=False))
    assert 3 * sum(counted) == TINY.products(mixer)


def test_the_table_has_a_line_for_each_figure_and_says_what_it_means():
    figures = [bench.Figures("S", "fourier", 10.0, 4.0, 25.0, 2e5, 50.0)]
    with_peak, without = bench.table(figures, 200.0), bench.table(figures, None)
    assert "fourier" in with_peak
    assert "2.5x" in with_peak
    assert "25%" in with_peak
    assert "of peak" not in without


def test_the_peak_is_a_rate():
    assert 0.1 < bench.sgemm_peak(size=64, tries=2) < 1e5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workload", "Q"], "workload is 'Q'"),
        (["--mixer", "furier"], "Did you mean 'fourier'?"),
        (["--seconds", "0"], "seconds is 0.0"),
    ],
)
def test_a_mistake_is_explained(words, said, capsys):
    assert main(["bench", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_command_prints_a_table_and_writes_the_figures(tiny, tmp_path, capsys):
    file = tmp_path / "figures.json"
    words = ["bench", "--workload", "T", "--mixer", "attention", "--seconds", "0.001"]
    assert main([*words, "--json", str(file)]) == 0
    assert "attention" in capsys.readouterr().out
    written = json.loads(file.read_text())
    assert written["peak_gflops"] == 100.0
    assert written["figures"][0]["mixer"] == "attention"
