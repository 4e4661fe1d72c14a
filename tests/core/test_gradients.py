"""Gradients: sums of the caller's, all views of one buffer, also in copies."""

import copy
import pickle

import numpy as np
import pytest

from npformer import Gradients
from npformer.layers import Linear

COPIES = {
    "copy()": Gradients.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda gradients: pickle.loads(pickle.dumps(gradients)),
}


@pytest.fixture
def layer():
    return Linear(3, 2, seed=0)


@pytest.fixture
def gradients(layer):
    found = Gradients(layer)
    found["weight"][...], found["bias"][...] = 1.0, 2.0
    return found


def assert_all(gradients, **expected):
    """Assert that all entries of a gradient are one number."""
    for name, number in expected.items():
        np.testing.assert_array_equal(gradients[name], number)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_has_a_buffer_of_its_own(gradients, copied):
    other = copied(gradients)
    assert_all(other, weight=1.0, bias=2.0)
    other["bias"][...] = 7.0
    gradients["weight"][...] = -1.0
    assert_all(gradients, weight=-1.0, bias=2.0)
    assert_all(other, weight=1.0, bias=7.0)
    other.flat[...] = 5.0
    assert_all(other, weight=5.0, bias=5.0)


def test_zero_empties_the_views_and_a_copy_keeps_its_sums(gradients):
    kept = gradients.copy()
    gradients.zero()
    assert_all(gradients, weight=0.0, bias=0.0)
    assert_all(kept, weight=1.0, bias=2.0)
