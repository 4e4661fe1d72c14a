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
    counts = kills(3, seed=0, victim=victim())
    assert counts["problems"] == []
    assert counts["kills"] >= 3
    assert (counts["lost"], counts["different"]) == (0, 0)
