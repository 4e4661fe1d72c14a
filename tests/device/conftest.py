"""Every test here sees the strict fake device as backend "fake"."""

from collections.abc import Iterator

import pytest

import npformer as nf
from npformer.core import Backend
from npformer.core import arrays as backends
from tests import fake_device


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests here have sequences that are all padding, without a word."""
    for item in items:
        if item.nodeid.startswith("tests/device/"):
            item.add_marker(pytest.mark.filterwarnings("ignore:.* have no token"))


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
