"""npformer doctor: without a GPU, and with the strict fake device in place of one."""

from collections import defaultdict
from dataclasses import replace
from importlib import metadata

import pytest
import threadpoolctl

import npformer as nf
from npformer.cli import doctor
from npformer.core import arrays as backends
from tests import fake_device
from tests.cli.conftest import run


@pytest.fixture
def gpu(monkeypatch):
    """Put the fake device in CuPy's place, and multiply small matrices only."""
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    backends.register(replace(fake_device.backend(), name="cupy"))
    for kernels in ("KERNELS", "UPDATES"):  # of real CUDA
        monkeypatch.setattr(f"npformer.engine.gpu.{kernels}", {})
    product = doctor._product
    monkeypatch.setattr(doctor, "_product", lambda *given: product(*given, 16, 0.001))


@pytest.fixture
def no_gpu(monkeypatch):
    def load():
        raise nf.BackendUnavailableError("backend 'cupy' needs an NVIDIA GPU; there is none")

    monkeypatch.setattr(backends, "_backends", {"numpy": backends.NUMPY})
    monkeypatch.setitem(backends._loaders, "cupy", load)


@pytest.fixture
def diagnosis(capsys):
    """Run, expect this status, and return (mark, what, found) for each line."""

    def check(status=0):
        assert run("doctor") == status
        return [tuple(line.split(maxsplit=2)) for line in capsys.readouterr().out.splitlines()]

    return check


def test_nothing_is_wrong_here(diagnosis):
    lines = diagnosis()
    assert all(mark in ("ok", "--") for mark, _, _ in lines)
    shown = {"npformer", "Python", "numpy", "scipy", "BLAS", "self-test", "GPU"}
    assert {what for _, what, _ in lines} >= shown


def test_the_kernels_of_blas_are_named(diagnosis, monkeypatch):
    """Some are half as fast as others that the processor could run."""
    one = {"user_api": "blas", "internal_api": "openblas", "version": "0.3", "num_threads": 2}
    libraries = [one | {"architecture": "Haswell"}, one]
    monkeypatch.setattr(threadpoolctl.ThreadpoolController, "info", lambda self: libraries)
    expected = (
        "openblas 0.3, kernels for Haswell, threads: 2; openblas 0.3, kernels for any, threads: 2"
    )
    assert ("ok", "BLAS", expected) in diagnosis()


@pytest.fixture
def missing(monkeypatch):
    """Make these packages look as if they were not installed."""
    real_version = metadata.version

    def pretend(*names):
        def version(name):
            if name in names:
                raise metadata.PackageNotFoundError(name)
            return real_version(name)

        monkeypatch.setattr(metadata, "version", version)

    return pretend


def test_a_package_that_is_missing_is_reported(diagnosis, missing):
    missing("scipy", "matplotlib")
    lines = diagnosis(status=1)
    assert ("PROBLEM", "scipy", "not installed") in lines
    hint = 'not installed; python -m pip install "npformer[plot]"'
    assert ("--", "matplotlib", hint) in lines


# Without a GPU ------------------------------------------------------------------------------------
@pytest.mark.usefixtures("no_gpu")
def test_a_missing_gpu_is_no_problem(prints, missing):
    missing("cupy-cuda13x", "cupy-cuda12x", "cupy")
    assert prints("doctor").splitlines()[-2:] == [
        "--       CuPy         not installed",
        "--       GPU          backend 'cupy' needs an NVIDIA GPU; there is none",
    ]


# With a fake GPU ----------------------------------------------------------------------------------
@pytest.fixture
def lines_with_gpu(gpu, diagnosis):
    """Return what each line says about a fake GPU, by its subject."""
    lines = defaultdict(list)
    for mark, what, rest in diagnosis():
        assert mark in ("ok", "--")
        lines[what].append(rest)
    return lines


def test_a_gpu_is_described(lines_with_gpu):
    assert lines_with_gpu["GPU"] == ["a strict fake device"]


def test_a_gpu_is_compared_with_numpy(lines_with_gpu):
    assert "cupy and NumPy differ by" in lines_with_gpu["gradients"][0]


def test_the_speed_of_a_gpu_is_measured(lines_with_gpu):
    products = lines_with_gpu["products"]
    assert [rest.partition(":")[0] for rest in products] == ["float32", "tf32"]
    assert all("TFLOP/s" in rest for rest in products)


def test_a_gpu_has_a_self_test(lines_with_gpu):
    assert [rest.partition(":")[0] for rest in lines_with_gpu["self-test"]] == ["numpy", "cupy"]


@pytest.mark.usefixtures("gpu")
def test_a_gpu_without_tf32_is_no_problem(diagnosis):
    def refuse(on):
        raise ValueError("precision is 'tf32' and this device has none")

    backends.register(replace(backends.get_backend("cupy"), set_tf32=refuse))
    assert ("--", "products", "precision is 'tf32' and this device has none") in diagnosis()


@pytest.mark.usefixtures("gpu")
def test_a_gpu_that_computes_wrong_results_is_a_problem(diagnosis):
    wrong = fake_device._function("erfcx", lambda x: x * 0.5, None)
    backends.register(replace(backends.get_backend("cupy"), erfcx=wrong))
    (line,) = [rest for _, what, rest in diagnosis(status=1) if what == "gradients"]
    assert "differ by" in line


@pytest.mark.usefixtures("gpu")
def test_a_gpu_that_raises_an_error_is_a_problem(diagnosis, monkeypatch):
    def fails(backend):
        raise OSError("libcublas.so.13: cannot open shared object file")

    monkeypatch.setattr(doctor, "_gradients_agree", fails)
    expected = "cupy: OSError: libcublas.so.13: cannot open shared object file"
    assert ("PROBLEM", "self-test", expected) in diagnosis(status=1)


@pytest.fixture
def verdicts(monkeypatch, gpu):
    """Return what is to be wrong, by dtype, in place of what a process would find."""
    wrong = {}

    def judge(dtype, precision, again):
        assert again
        environment = {"GPU": "a strict fake device", "dtype": dtype}
        return {"about": environment, "problems": wrong.get(dtype, {}), "seconds": 1.25}

    monkeypatch.setattr(doctor, "kernel_verdict", judge)
    return wrong


def test_kernels_are_checked_again(diagnosis, verdicts):
    lines = [(mark, rest) for mark, what, rest in diagnosis() if what == "kernels"]
    products = "float32, float32", "float32, tf32", "float64, float32"
    assert lines == [("ok", f"{kinds} products: checked in 1.2 s") for kinds in products]


def test_a_kernel_that_is_left_out_is_a_problem(diagnosis, verdicts):
    verdicts["float64"] = {"linear": "y differs"}
    first, _, last = [line for line in diagnosis(status=1) if line[1] == "kernels"]
    assert first[0] == "ok"
    assert last[0] == "PROBLEM"
    assert "linear (y differs). GPU a strict fake device, dtype float64" in last[2]


@pytest.fixture
def report(verdicts, tmp_path):
    """Return the report of a GPU of which a kernel is wrong."""
    verdicts["float32"] = {"linear": "y differs"}
    file = tmp_path / "report.txt"
    assert run("doctor", "--report", str(file)) == 1
    return file.read_text("utf-8")


def test_a_report_has_all_lines_that_are_printed(capsys, report):
    assert set(capsys.readouterr().out.splitlines()) <= set(report.splitlines())


def test_a_report_has_the_verdicts_on_kernels(report):
    assert report.count('"linear": "y differs"') == 2


@pytest.mark.usefixtures("gpu")
def test_kernels_that_are_trusted_are_not_checked(diagnosis):
    assert ("--", "kernels", "not checked: NPFORMER_CHECK_KERNELS is 0") in diagnosis()
