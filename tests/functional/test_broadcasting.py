import numpy as np
import pytest

from npformer.functional.broadcasting import broadcast_shape, sum_to


@pytest.mark.parametrize(
    "shape", [(), (1,), (3,), (2, 3), (2, 1), (1, 3), (4, 2, 3), (4, 1, 3), (1, 1, 1), (4, 1, 1)]
)
def test_what_was_repeated_is_summed(rng, shape):
    gradient = rng.normal(size=(4, 2, 3))
    x = rng.normal(size=shape)
    summed = sum_to(gradient, shape)
    assert summed.shape == shape
    # <gradient, broadcast x> = <summed, x>: the two maps are each other's transpose
    np.testing.assert_allclose((summed * x).sum(), (gradient * x).sum(), rtol=1e-12)


def test_nothing_repeated_is_nothing_summed(rng):
    gradient = rng.normal(size=(4, 2, 3))
    assert sum_to(gradient, (4, 2, 3)) is gradient


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ((4, 1, 3), (2, 1), (4, 2, 3)),
        ((), (3,), (3,)),
        ((), (), ()),
        ((2,), (3,), None),
        ((2, 3), (2, 4), None),
    ],
)
def test_shapes_fit_or_there_is_none(one, other, together):
    assert broadcast_shape(one, other, reference=np.ones(1)) == together
