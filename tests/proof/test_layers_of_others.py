"""Gradcheck finds the wrong ones of others' layers, and lets the right ones pass."""

import pytest

from tests.proof.layers_of_others import (  # noqa: F401 (each registers its layers)
    right_calls,
    right_points,
    wrong_memory,
    wrong_numbers,
    wrong_parameters,
)
from tests.proof.layers_of_others.cases import CASES

MISSED = {"wrong_parameters.NearlyOneInRealNumbers"}
"""2e-7 are less than central differences can tell, and this forward pass has no complex form."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradcheck_judges_a_layer_rightly(case):
    assert case.passes() == (case.right or case.name in MISSED)


def test_names_are_unique_and_each_missed_one_is_there():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert set(names) >= MISSED
