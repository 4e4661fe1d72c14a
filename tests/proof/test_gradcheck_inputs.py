"""What gradcheck does with the arrays that it is given; it misses no entry of a big one."""

import numpy as np
import pytest

from npformer import functional as F
from npformer import layers as L
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError


@pytest.mark.parametrize("seed", range(20))
def test_one_wrong_entry_of_1600_is_found_whatever_the_seed(rng, seed):
    """Only directions weigh all entries; the single ones that are looked at are a sample."""
    wrong = tuple(rng.integers(0, 40, (20, 2))[seed])

    def backward(dy, cache):
        dx = 2.0 * dy
        dx[wrong] *= 1.01
        return dx

    with pytest.raises(GradcheckError) as caught:
        gradcheck((lambda x: (2.0 * x, None), backward), rng.normal(size=(40, 40)), seed=seed)
    assert caught.value.report.tensors[0].where == tuple(wrong)


def test_two_wrong_entries_of_10000_are_seen_along_directions(rng):
    """No single entry has the errors along all directions."""

    def backward(dy, cache):
        dx = 2.0 * dy
        dx.flat[[1234, 4321]] *= 1.5
        return dx

    with pytest.raises(GradcheckError) as caught:
        gradcheck((lambda x: (2.0 * x, None), backward), rng.normal(size=(100, 100)))
    (tensor,) = caught.value.report.tensors
    assert (tensor.checked, tensor.where) == ("8 directions", None)


def read_only(x):
    x.flags.writeable = False
    return x


def test_arrays_may_be_read_only_and_stay_as_they_were(rng):
    x, W, b = (read_only(rng.normal(size=shape)) for shape in ((6, 5), (5, 4), (4,)))
    original_x = x.copy()
    assert gradcheck(F.linear, x, W, b=b).passed
    assert gradcheck(L.Linear(5, 4, seed=0, dtype="float64"), x).passed
    broadcast = np.broadcast_to(x[0], (6, 5))
    assert gradcheck(L.Linear(5, 4, seed=0, dtype="float64"), broadcast).passed
    ids = read_only(rng.integers(0, 7, (2, 3)))
    assert gradcheck(L.Embedding(7, 4, seed=0, dtype="float64"), ids).passed
    np.testing.assert_array_equal(x, original_x)


def test_one_array_may_be_given_as_several_arguments(rng):
    """Each is moved by itself, or the three gradients would be compared with their sum."""
    x = rng.normal(size=(2, 4, 3))
    report = gradcheck(F.scaled_dot_product_attention, x, x, x)
    assert [tensor.name for tensor in report.tensors] == ["query", "key", "value"]
    assert gradcheck(F.linear, x[0, :3], x[0, :3], b=x[0, 0]).passed
