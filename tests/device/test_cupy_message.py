"""Asking for a GPU that is not there: one line says what is missing and what to do."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import npformer as nf
from npformer.core import arrays as backends


class CUDARuntimeError(RuntimeError):
    """Stands in for CuPy's."""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> nf.layers.Linear:
    """A small model, on a machine that has not looked for CuPy yet."""
    monkeypatch.setattr(backends, "_backends", {"numpy": backends.NUMPY})
    return nf.layers.Linear(2, 2, seed=0)


def cupy_that_finds(monkeypatch: pytest.MonkeyPatch, count: Any) -> None:
    """Put in CuPy's place a module that finds so many devices."""
    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    names = ("cupy", "cupyx", "cupyx.scipy", "cupyx.scipy.special")
    modules = {name: ModuleType(name) for name in names}
    modules["cupy"].cuda = SimpleNamespace(runtime=runtime)  # type: ignore[attr-defined]
    modules["cupy"].__version__ = "13.6.0"  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def message(model: nf.Layer) -> str:
    with pytest.raises(nf.BackendUnavailableError) as raised:
        model.to("cupy")
    return str(raised.value)


def test_without_cupy_the_error_says_how_to_install_it(model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    text = message(model)
    assert text.startswith("backend 'cupy' needs CuPy, which cannot be imported here")
    assert 'python -m pip install "npformer[cuda13]"' in text
    assert '"npformer[cuda12]"' in text
    assert "\n" not in text


def test_without_a_driver_the_error_says_what_to_check(model, monkeypatch) -> None:
    def count() -> int:
        raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    cupy_that_finds(monkeypatch, count)
    text = message(model)
    assert text.startswith("backend 'cupy' needs an NVIDIA GPU and its driver; CuPy 13.6.0 is")
    assert "cudaErrorInsufficientDriver" in text
    assert "`nvidia-smi`" in text
    assert "stay on backend 'numpy'" in text
    assert "\n" not in text


def test_with_a_driver_and_no_device_the_error_says_so(model, monkeypatch) -> None:
    cupy_that_finds(monkeypatch, lambda: 0)
    text = message(model)
    assert "finds no device" in text
    assert "`nvidia-smi`" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "error",
    [
        ImportError('Failure finding "libcublasLt.so.13": cannot open shared object file'),
        RuntimeError("Failed to find CUDA headers.\nPlease set CUDA_PATH"),
    ],
)
def test_without_cudas_libraries_the_error_says_where_they_come_from(
    model, monkeypatch, error
) -> None:
    def ones(*arguments: Any, **options: Any) -> None:
        raise error

    cupy_that_finds(monkeypatch, lambda: 1)
    monkeypatch.setattr(sys.modules["cupy"], "ones", ones, raising=False)
    text = message(model)
    assert text.startswith("backend 'cupy' needs CUDA's libraries; CuPy 13.6.0 finds the GPU and")
    assert str(error).splitlines()[0] in text
    assert 'python -m pip install "npformer[cuda13]"' in text
    assert "\n" not in text


def test_the_model_stays_usable_where_it_was(model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    message(model)
    assert model.backend == "numpy"


def test_a_failure_is_not_remembered(model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    message(model)
    cupy_that_finds(monkeypatch, lambda: 0)
    assert "finds no device" in message(model)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_the_installed_cupy_without_a_device_gives_the_same_error(model) -> None:
    import cupy

    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        found = 0
    if found:
        pytest.skip(f"this machine has {found} GPU(s)")
    text = message(model)
    assert text.startswith("backend 'cupy' needs an NVIDIA GPU")
    assert f"CuPy {cupy.__version__} is installed" in text
    assert "\n" not in text


def test_importing_npformer_does_not_import_cupy() -> None:
    code = "import npformer, sys; npformer.backends(); sys.exit('cupy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_backend_lists_those_there_are(model) -> None:
    with pytest.raises(ValueError, match="unknown backend 'tpu'; npformer has numpy, cupy"):
        model.to("tpu")
