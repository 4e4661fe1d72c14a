"""Ranks of one machine take a GPU each: the number that the launcher gave them."""

from types import SimpleNamespace

import pytest

from npformer.core.cupy import backend as cupy_backend


class Device:
    """cupy.cuda.Device: without a number, the one in use."""

    current = 0

    def __init__(self, number=None):
        self.id = Device.current if number is None else number

    def use(self):
        Device.current = self.id


CUPY = SimpleNamespace(cuda=SimpleNamespace(Device=Device))


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    monkeypatch.setattr(Device, "current", 0)
    for name in cupy_backend.LOCAL_RANKS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", cupy_backend.LOCAL_RANKS)
@pytest.mark.parametrize(
    ("rank", "devices", "expected"), [(0, 4, 0), (3, 4, 3), (5, 4, 1), (2, 1, 0), (1, 2, 1)]
)
def test_each_rank_takes_its_number(monkeypatch, name, rank, devices, expected):
    monkeypatch.setenv(name, str(rank))
    cupy_backend._choose_device(CUPY, devices)
    assert Device.current == expected


def test_without_a_launcher_or_where_the_user_has_chosen_the_device_stays(monkeypatch):
    cupy_backend._choose_device(CUPY, 4)
    assert Device.current == 0
    monkeypatch.setattr(Device, "current", 2)
    monkeypatch.setenv("MPI_LOCALRANKID", "1")
    cupy_backend._choose_device(CUPY, 4)
    assert Device.current == 2
