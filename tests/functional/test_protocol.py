"""What every pair keeps to, whatever it computes."""

import copy

import numpy as np
import pytest

from tests.pairs import MASKED, NAMES, PLAIN, gradients_of, pairs, run

pytestmark = pytest.mark.parametrize("example", [PLAIN, MASKED], ids=["plain", "masked"])
EACH_PAIR = pytest.mark.parametrize("name", NAMES)


def test_every_pair_has_a_row(example):
    assert sorted(pairs(example, "float64")) == NAMES


@EACH_PAIR
def test_a_later_call_overwrites_no_earlier_result(name, example):
    y, cache = run(name, example)
    gradients = gradients_of(name, np.ones_like(y), cache)
    copies = copy.deepcopy((y, *gradients))

    other, other_cache = run(name, example)
    gradients_of(name, np.full_like(other, 3.0), other_cache)

    for array, before in zip((y, *gradients), copies, strict=True):
        np.testing.assert_array_equal(array, before)


@EACH_PAIR
def test_a_backward_pass_is_linear_in_dy(name, example, rng):
    y, cache = run(name, example)
    a, b = rng.normal(size=y.shape), rng.normal(size=y.shape)
    of_a, of_b, of_both = (gradients_of(name, dy, cache) for dy in (a, b, a + 2.0 * b))
    for one, other, gradient_of_sum in zip(of_a, of_b, of_both, strict=True):
        np.testing.assert_allclose(gradient_of_sum, one + 2.0 * other, rtol=0, atol=1e-12)
