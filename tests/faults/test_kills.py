"""A few kills; ``python -m benchmarks faults`` makes hundreds."""

import sys

import pytest

from tests.faults.kills import Fit, Train, kills

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="not Linux: copies of the process, and their ids, are its own"
)


@pytest.mark.processes
@pytest.mark.parametrize("victim", [Fit, Train])
def test_killed_trainings_lose_nothing(victim):
    found = kills(3, seed=0, victim=victim())
    assert found["problems"] == []
    assert found["kills"] >= 3
    assert (found["lost"], found["different"]) == (0, 0)
