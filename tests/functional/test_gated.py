import numpy as np
import pytest

from npformer import functional as F


def test_a_gate_of_ones_leaves_two_linear_maps(rng):
    x, up, down = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 6)), rng.normal(size=(6, 4))
    wide = 1e3 * np.ones((4, 6))
    y, _ = F.gated(np.abs(x), wide, up, down, activation="tanh")  # tanh is 1 there
    np.testing.assert_allclose(y, np.abs(x) @ up @ down, rtol=1e-12)


def test_what_does_not_fit_is_refused():
    x, W, down = np.ones((2, 4)), np.ones((4, 6)), np.ones((6, 4))
    with pytest.raises(ValueError, match=r"W_up has shape \(4, 5\); expected \(4, 6\)"):
        F.gated(x, W, W[:, :5], down)
    with pytest.raises(ValueError, match="activation is 'swish'"):
        F.gated(x, W, W, down, "swish")
