"""Tests here see an emulated CuPy as backend "cupy", and the real one where there is a GPU."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from npformer.core import Backend, BackendUnavailableError
from npformer.core import arrays as backends
from npformer.core.cupy_backend import load_cupy
from tests.fake_device import FakeArray
from tests.kernels.gpu import emulated


def _places() -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what CuPy says of an installation at its import
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
def cupy(monkeypatch: pytest.MonkeyPatch, place: str) -> Backend:
    """The backend "cupy", for the length of one test."""
    monkeypatch.setattr(backends, "_backends", {"numpy": backends.NUMPY})
    if place == "device":
        return backends.get_backend("cupy")
    backends.register(emulated.backend())
    emulated.copies.clear()
    product = FakeArray.__matmul__

    def watched(self: FakeArray, other: Any) -> Any:
        emulated.check_no_copy(self, other)
        return product(self, other)

    monkeypatch.setattr(FakeArray, "__matmul__", watched)
    return backends.get_backend("cupy")


@pytest.fixture
def emulation(cupy: Backend, place: str) -> None:
    """Skip on a real device what looks into the emulated one."""
    if place != "emulated":
        pytest.skip("looks into the emulated device")
