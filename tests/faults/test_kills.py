"""A few kills; ``python -m benchmarks faults`` makes hundreds."""

import sys

import pytest

from tests.faults.kills import Fit, Train, kills

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="not Linux: copies of the process, and their ids, are its own"
)


@pytest.mark.parametrize(
    ("n", "victim"),
    [
        (1, Fit),
        pytest.param(3, Fit, marks=pytest.mark.processes),
        pytest.param(3, Train, marks=pytest.mark.processes),
    ],
)
def test_killed_trainings_lose_nothing(n, victim):
    found = kills(n, seed=0, victim=victim())
    assert found["problems"] == []
    assert found["kills"] >= n
    assert (found["lost"], found["different"]) == (0, 0)
