"""Layers of benchmarks/gradcheck_layers/: each is what it claims, and gradcheck says as expected.

Who mends gradcheck takes `missed` or `false_alarm` away from the layer that it now judges rightly.
"""

import pytest

from benchmarks.gradcheck_layers import cases
from benchmarks.gradcheck_layers.differences import is_right, is_wrong
from benchmarks.gradcheck_layers.rules import broken

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_layer_is_what_it_claims(case):
    if case.right:
        assert is_right(case)
        assert broken(case) == []
    else:
        assert is_wrong(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradcheck_says_what_is_expected(case):
    outcome, said = case.gradcheck()
    assert (outcome == "passed") == case.passes, f"{outcome}: {said}"


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)
