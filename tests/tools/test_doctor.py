"""What doctor says: without a GPU, and with one, for which the strict fake device stands in."""

from dataclasses import replace

import pytest

import npformer as nf
from npformer.core import arrays as backends
from npformer.tools import cli, doctor
from tests import fake_device


@pytest.fixture
def gpu(monkeypatch):
    """Put the fake device in CuPy's place."""
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    backends.register(replace(fake_device.backend(), name="cupy"))
    for kernels in ("KERNELS", "UPDATES"):  # of real CUDA
        monkeypatch.setattr(f"npformer.engine.gpu.{kernels}", {})


@pytest.fixture
def quick(monkeypatch):
    """Multiply small matrices only."""
    examine = doctor._examine
    monkeypatch.setattr(doctor, "_examine", lambda backend: examine(backend, 16, 0.001))


def found(capsys):
    assert cli.main(["doctor"]) in (0, 1)
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    return [(mark, what, rest) for mark, what, rest in lines]


@pytest.fixture
def no_gpu(monkeypatch):
    def load():
        raise nf.BackendUnavailableError("backend 'cupy' needs an NVIDIA GPU; there is none")

    monkeypatch.setattr(backends, "_backends", {"numpy": backends.NUMPY})
    monkeypatch.setitem(backends._loaders, "cupy", load)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_each_missing_thing_is_a_line_and_nothing_is_wrong(capsys):
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "--       GPU          backend 'cupy' needs an NVIDIA GPU; there is none"
    assert lines[-2].startswith("--       CuPy ")


@pytest.mark.usefixtures("no_gpu")
def test_without_cupy_that_is_said(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "_cupy_version", lambda: None)
    assert ("--", "CuPy", "not installed") in found(capsys)


@pytest.mark.usefixtures("gpu", "quick")
def test_with_a_gpu_its_details_and_tests_are_shown(capsys):
    lines = found(capsys)
    assert all(mark in ("ok", "--") for mark, _, _ in lines)
    shown = {what: rest for _, what, rest in lines}
    assert shown["GPU"] == "a strict fake device"
    assert "cupy and NumPy differ by" in shown["gradients"]
    products = [rest for _, what, rest in lines if what == "products"]
    assert [rest.partition(":")[0] for rest in products] == ["float32", "tf32"]
    assert all("TFLOP/s" in rest for rest in products)
    tests = [rest for _, what, rest in lines if what == "self-test"]
    assert [rest.partition(":")[0] for rest in tests] == ["numpy", "cupy"]


@pytest.mark.usefixtures("gpu", "quick")
def test_a_gpu_without_tf32_is_no_problem(capsys):
    def refuse(on):
        raise ValueError("precision is 'tf32' and this device has none")

    backends.register(replace(backends.get_backend("cupy"), set_tf32=refuse))
    assert ("--", "products", "precision is 'tf32' and this device has none") in found(capsys)


@pytest.mark.usefixtures("gpu", "quick")
def test_a_gpu_that_computes_something_else_is_a_problem(capsys):
    wrong = fake_device._function("erf", lambda x: x * 0.5, None)
    backends.register(replace(backends.get_backend("cupy"), erf=wrong))
    (line,) = [rest for mark, what, rest in found(capsys) if what == "gradients"]
    assert cli.main(["doctor"]) == 1
    assert "differ by" in line


@pytest.mark.usefixtures("gpu", "quick")
def test_a_gpu_that_fails_is_a_problem_in_words(capsys, monkeypatch):
    def fails(backend):
        raise OSError("libcublas.so.13: cannot open shared object file")

    monkeypatch.setattr(doctor, "_gradients_agree", fails)
    expected = "cupy: OSError: libcublas.so.13: cannot open shared object file"
    assert ("PROBLEM", "self-test", expected) in found(capsys)
