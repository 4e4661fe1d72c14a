import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 3)])
def test_every_position_is_its_own_weighted_sum(rng, leading):
    x, W, b = rng.normal(size=(*leading, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)
    by_hand = np.einsum("...i,ij->...j", x, W)
    np.testing.assert_allclose(F.linear(x, W)[0], by_hand, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(F.linear(x, W, b)[0], by_hand + b, rtol=1e-13, atol=1e-14)
