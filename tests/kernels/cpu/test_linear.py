import numpy as np
import pytest

from npformer.engine import EngineContext
from npformer.engine.cpu.linear import linear, linear_backward
from tests.kernels.cpu import helpers
from tests.kernels.cpu.helpers import assert_parity


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("d_out", [1, 3, 257])
@pytest.mark.parametrize("shape", [(1,), (1, 64), (101, 1), (2, 7, 3), (1, 13, 257), (2, 2, 3, 5)])
def test_of_any_shape(shape, d_out, bias):
    assert_parity(helpers.linear(shape, d_out, bias))


def test_no_rows_at_all():
    x, W, b = np.zeros((0, 4, 3)), np.ones((3, 5)), np.ones(5)
    y, cache = linear(x, W, b, context=EngineContext())
    assert y.shape == (0, 4, 5)
    dx, dW, db = linear_backward(y, cache)
    assert dx.shape == x.shape
    np.testing.assert_array_equal(dW, np.zeros((3, 5)))
    np.testing.assert_array_equal(db, np.zeros(5))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3), (4, 5), (5,)), "x has shape"),
        (((2, 3), (3, 5), (4,)), "b has shape"),
        (((2, 3), (3,), (3,)), "W has shape"),
    ],
)
def test_what_does_not_fit_is_refused_as_the_pair_refuses_it(shapes, message):
    with pytest.raises(ValueError, match=message):
        linear(*map(np.ones, shapes), context=EngineContext())
