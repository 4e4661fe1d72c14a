"""Every test here sees the strict fake device as backend "fake"."""

from collections.abc import Iterator

import pytest

import npformer as nf
from npformer.core import Backend
from npformer.core import arrays as backends
from tests import fake_device


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Backend:
    """The backend "fake", known for the length of one test."""
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    backends.register(fake_device.backend())
    return backends.get_backend("fake")


@pytest.fixture
def plain() -> Iterator[None]:
    """Have NumPy compute without kernels too: the fake device has none."""
    with nf.use_kernels(False):
        yield
