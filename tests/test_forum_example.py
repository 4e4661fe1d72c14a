"""The example that a forum question about the Dense Synthesizer printed.

Someone ran ``softmax(linear2(relu(linear1(x)))) @ v`` once and posted x, v and the result, but not
the weights of the two linear maps. This row-stochastic B reproduces what was printed, so the
example tests the softmax's axis and the averaging of values, not the maps.
"""

import numpy as np
import pytest

from npformer import functional as F

V = np.array(
    [
        [0.3806, 0.1775, 0.5457, 0.6746, 0.4505],
        [0.6309, 0.2790, 0.7215, 0.4283, 0.5853],
        [0.7548, 0.6887, 0.0426, 0.1057, 0.7895],
        [0.1881, 0.5334, 0.6834, 0.4845, 0.1960],
    ]
)
PRINTED = np.array(
    [
        [0.5371, 0.4528, 0.4560, 0.3735, 0.5492],
        [0.5426, 0.4434, 0.4625, 0.3770, 0.5536],
        [0.5362, 0.4477, 0.4658, 0.3769, 0.5468],
        [0.5430, 0.4461, 0.4559, 0.3755, 0.5551],
    ]
)
B = np.array(
    [
        [0.168983, 0.285274, 0.335529, 0.210214],
        [0.174458, 0.308256, 0.325501, 0.191785],
        [0.165155, 0.302284, 0.322014, 0.210547],
        [0.179522, 0.295928, 0.334004, 0.190545],
    ]
)
SCORES = np.log(B)
SHIFTED = SCORES + np.array([[3.0], [-1.0], [0.5], [8.0]])
"""Other scores with the same weights. Their exponentials are no weights before the division."""
DIGITS = 1e-4  # four decimals were printed


def miss(y):
    return np.abs(y - PRINTED).max()


def synthesize(x, value):
    """Run the Dense Synthesizer with maps under which x = identity has the scores SHIFTED."""
    identity, zeros = np.eye(4), np.zeros(4)
    y, _ = F.dense_synthesizer(x, value, identity, zeros, SHIFTED, zeros)
    return y


def test_softmax_over_the_last_axis_gives_the_printed_digits():
    weights, _ = F.softmax(SHIFTED)
    assert miss(weights @ V) <= DIGITS


def test_softmax_over_the_first_axis_does_not():
    weights, _ = F.softmax(SCORES, axis=0)
    assert miss(weights @ V) == pytest.approx(5e-2, rel=0.2)


def test_the_dense_synthesizer_gives_the_printed_digits_alone_and_in_a_batch():
    # Row i of x picks row i of B: permuted tokens are permuted rows of the result.
    order = [2, 0, 3, 1]
    y = synthesize(np.stack([np.eye(4), np.eye(4)[order]]), np.stack([V, V]))
    assert miss(synthesize(np.eye(4), V)) <= DIGITS
    assert miss(y[0]) <= DIGITS
    np.testing.assert_allclose(y[1], y[0][order], rtol=1e-15)
