"""Tests here see an emulated CuPy as backend "cupy", and the real one where there is a GPU."""

import warnings
from collections.abc import Iterator

import pytest

from npformer.core import Backend, BackendUnavailableError
from npformer.core import arrays as backends
from npformer.core.cupy.backend import load_cupy
from tests.kernels.gpu import emulated, helpers


def _places() -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CuPy's, about an incomplete installation
            load_cupy()
    except BackendUnavailableError:
        return ["emulated"]
    return ["emulated", "device"]


@pytest.fixture(params=_places())
def place(request: pytest.FixtureRequest) -> str:
    """Where "cupy" computes: "emulated" or "device"."""
    where: str = request.param
    if where == "emulated" and emulated.MISSING:
        pytest.skip(emulated.MISSING)
    return where


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, place: str) -> Iterator[Backend]:
    """The backend "cupy", for the length of one test."""
    monkeypatch.setattr(backends, "_backends", {"numpy": backends.NUMPY})
    if place == "device":  # has other algorithms of products, exp and erf
        monkeypatch.setitem(helpers.TOLERANCE, "float64", 1e-10)
        monkeypatch.setitem(helpers.TOLERANCE, "float32", 1e-4)
    else:
        backends.register(emulated.backend())
    yield backends.get_backend("cupy")
    assert emulated._order == 0


@pytest.fixture
def emulation(cupy: Backend, place: str) -> None:
    """Skip on a real device what looks into the emulated one."""
    if place != "emulated":
        pytest.skip("looks into the emulated device")
