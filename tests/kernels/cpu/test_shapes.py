"""Each kernel computes what its pairs do, for any shape and size of numbers, in any pieces."""

from itertools import product

import pytest

from npformer.layers import ACTIVATIONS
from tests.kernels import helpers
from tests.kernels.cpu.helpers import assert_parity

ROWS = [(1,), (1, 64), (101, 1), (2, 7, 3), (1, 13, 257), (2, 2, 3, 5)]
HIDDEN = [((1,), 1), ((1, 64), 257), ((101, 1), 3), ((13, 257), 1), ((2, 2, 3, 5), 7)]
IDS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"]

CASES = [
    *(helpers.linear(*given) for given in product(ROWS, (1, 3, 257), (True, False))),
    *(helpers.layer_norm(x) for x in [(64,), (101, 3), (7, 13, 64), (3, 1), *ROWS]),
    *(helpers.layer_norm((13, 64), eps) for eps in (1e-12, 10.0)),
    *(helpers.feed_forward(*sizes, a) for sizes, a in product(HIDDEN, ACTIVATIONS)),
    *(helpers.feed_forward((5, 7, 16), 23, *given) for given in product(ACTIVATIONS, (1e-3, 30.0))),
    *(helpers.fourier_mixing((5, *x)) for x in product((1, 2, 3, 13, 64), (1, 2, 3, 4, 64, 257))),
    *(helpers.fourier_mixing(x) for x in [(7, 5), (2, 3, 4, 6)]),
    *(
        helpers.embedding(*given)
        for given in product([(), (1,), (5, 7), (2, 3, 4)], (1, 2, 1009), (1, 3, 64))
    ),
    *(helpers.embedding((5, 7), 11, 3, dtype) for dtype in IDS),
    *(
        helpers.dense_heads(*sizes, mask="padded")
        for sizes in [(1, 1, 1, 3, 3), (7, 3, 1, 64, 5), (3, 13, 1, 257, 17)]
    ),
]


BY_KERNEL = {one.name: [case for case in CASES if case.name == one.name] for one in CASES}


@pytest.mark.parametrize("name", BY_KERNEL)
def test_the_kernel_computes_what_its_pairs_do(name, piece):
    for case in BY_KERNEL[name]:
        assert_parity(case)
