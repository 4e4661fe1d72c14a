"""Asking for a GPU that is not there: one line says what is missing and what to do."""

import importlib.util
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer.core import arrays as backends
from tests.needs import NEEDS


class CUDARuntimeError(RuntimeError):
    """Stands in for CuPy's."""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> nf.layers.Linear:
    """A small model, on a machine that has not looked for CuPy yet."""
    monkeypatch.setattr(backends, "_backends", {"numpy": backends.NUMPY})
    return nf.layers.Linear(2, 2, seed=0)


def put_in(monkeypatch: pytest.MonkeyPatch, count: Any, ones: Any = np.ones) -> None:
    """Put a module in CuPy's place that counts devices and makes arrays with these functions."""
    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    cupy: Any = ModuleType("cupy")
    cupy.__version__ = "13.6.0"
    cupy.cuda = SimpleNamespace(runtime=runtime)
    cupy.ones = ones
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.special"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


def message(model: nf.Layer) -> str:
    with pytest.raises(nf.BackendUnavailableError) as raised:
        model.to("cupy")
    return str(raised.value)


INSTALL = 'python -m pip install "npformer[cuda13]"'
LIBRARIES = "backend 'cupy' needs CUDA's libraries; CuPy 13.6.0 finds the GPU and"
NO_DRIVER = "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
NO_LIBRARY = 'Failure finding "libcublasLt.so.13": cannot open shared object file'
NO_HEADERS = "Failed to find CUDA headers."
PROBLEMS: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "no driver": (
        (Mock(side_effect=CUDARuntimeError(NO_DRIVER)),),
        "backend 'cupy' needs an NVIDIA GPU and its driver; CuPy 13.6.0 is",
        ("cudaErrorInsufficientDriver", "`nvidia-smi`", "stay on backend 'numpy'"),
    ),
    "no device": ((lambda: 0,), "backend 'cupy'", ("finds no device", "`nvidia-smi`")),
    "no library": (
        (lambda: 1, Mock(side_effect=ImportError(NO_LIBRARY))),
        LIBRARIES,
        (NO_LIBRARY, INSTALL),
    ),
    "no headers": (
        (lambda: 1, Mock(side_effect=RuntimeError(f"{NO_HEADERS}\nPlease set CUDA_PATH"))),
        LIBRARIES,
        (NO_HEADERS, INSTALL),
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_one_line_helps_with_each_problem(model, monkeypatch, problem) -> None:
    functions, begins, words = PROBLEMS[problem]
    put_in(monkeypatch, *functions)
    text = message(model)
    assert text.startswith(begins)
    assert all(word in text for word in words), text
    assert "\n" not in text


def test_without_cupy_the_message_says_how_to_install_it(model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    text = message(model)
    assert text.startswith("backend 'cupy' needs CuPy, which cannot be imported here")
    assert all(word in text for word in (INSTALL, '"npformer[cuda12]"'))
    assert "\n" not in text


def test_without_cupy_the_model_stays_on_its_backend(model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    message(model)
    assert model.backend == "numpy"


def test_a_failure_is_not_remembered(model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    message(model)
    put_in(monkeypatch, lambda: 0)
    assert "finds no device" in message(model)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason=NEEDS["cupy"])
def test_the_installed_cupy_without_a_device_gives_the_same_error(model) -> None:
    import cupy

    try:
        device_count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        device_count = 0
    if device_count:
        pytest.skip(f"this machine has {device_count} GPU(s)")
    text = message(model)
    assert text.startswith("backend 'cupy' needs an NVIDIA GPU")
    assert f"CuPy {cupy.__version__} is installed" in text
    assert "\n" not in text


def test_importing_npformer_does_not_import_cupy() -> None:
    code = "import npformer, sys; npformer.backends(); sys.exit('cupy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_backend_lists_those_there_are(model) -> None:
    with pytest.raises(ValueError, match="unknown backend 'tpu'; expected numpy, cupy"):
        model.to("tpu")
