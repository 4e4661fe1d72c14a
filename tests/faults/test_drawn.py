"""A few drawn faults of each kind; ``python -m benchmarks faults`` draws thousands."""

import sys
from datetime import date

import pytest

from tests.faults.interrupts import interrupts
from tests.faults.overlaps import overlaps
from tests.faults.real_files import real_files

YEAR, WEEK, _ = date.today().isocalendar()
SEED = 100 * YEAR + WEEK


def test_tables_of_real_origin_are_read_right_or_refused_in_words():
    result = real_files(120, SEED)
    assert result["problems"] == []
    assert result["right"] > result["tried"] / 3


def test_each_thread_has_the_switches_that_it_asked_for():
    assert overlaps(36, SEED)["problems"] == []


@pytest.mark.processes
@pytest.mark.skipif(
    sys.platform == "win32", reason="Windows: no SIGINT can be sent to itself alone"
)
def test_after_an_interrupt_the_same_call_gives_the_same_bits():
    result = interrupts(12, SEED)
    assert result["problems"] == []
    assert result["running"] >= 1
