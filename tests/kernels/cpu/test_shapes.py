"""Kernels beside their pairs for any shape, without rows, and for arguments that do not fit."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from npformer.engine import EngineContext
from npformer.layers import ACTIVATIONS
from tests.kernels import helpers
from tests.kernels.cpu.helpers import KERNELS, assert_parity, expected, forward, run
from tests.kernels.helpers import Case

ROWS = [(1,), (1, 64), (101, 1), (2, 7, 3), (1, 13, 257), (2, 2, 3, 5)]
HIDDEN = [((1,), 1), ((1, 64), 257), ((101, 1), 3), ((13, 257), 1), ((2, 2, 3, 5), 7)]
IDS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"]

CASES = [
    *(helpers.linear(*sizes) for sizes in product(ROWS, (1, 3, 257), (True, False))),
    *(helpers.layer_norm(x) for x in [(64,), (101, 3), (7, 13, 64), (3, 1), *ROWS]),
    *(helpers.layer_norm((13, 64), eps) for eps in (1e-12, 10.0)),
    *(helpers.feed_forward(*sizes, a) for sizes, a in product(HIDDEN, ACTIVATIONS)),
    *(helpers.feed_forward((5, 7, 16), 23, a, 1e-3) for a in ACTIVATIONS),
    *(helpers.feed_forward((5, 7, 16), 23, a, 30.0) for a in ACTIVATIONS),
    *(helpers.fourier_mixing((5, *x)) for x in product((1, 2, 3, 13, 64), (1, 2, 3, 4, 64, 257))),
    *(helpers.fourier_mixing(x) for x in [(7, 5), (2, 3, 4, 6)]),
    *(
        helpers.embedding(*sizes)
        for sizes in product([(), (1,), (5, 7), (2, 3, 4)], (1, 2, 1009), (1, 3, 64))
    ),
    *(helpers.embedding((5, 7), 11, 3, dtype) for dtype in IDS),
    *(
        helpers.dense_heads(*sizes, mask="padded")
        for sizes in [(1, 1, 1, 3, 3), (7, 3, 1, 64, 5), (3, 13, 1, 257, 17)]
    ),
]


BY_KERNEL = {one.name: [case for case in CASES if case.name == one.name] for one in CASES}


@pytest.mark.parametrize("name", BY_KERNEL)
def test_the_kernel_computes_what_its_pairs_do(name, chunk_size):
    for case in BY_KERNEL[name]:
        assert_parity(case)


EMPTY = {
    "linear": helpers.linear((0, 4, 3), 5),
    "layer_norm": helpers.layer_norm((0, 3, 8)),
    "fourier_mixing": helpers.fourier_mixing((0, 4, 3)),
    "embedding": helpers.embedding((0, 4), 5, 3),
    **{f"feed_forward, {a}": helpers.feed_forward((0, 3, 8), 5, a) for a in helpers.ACTIVATIONS},
}


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY.keys())
def test_no_rows_at_all_send_zeros_to_the_parameters(empty):
    y, *gradients = run(empty)
    assert y.size == 0
    assert y.shape == expected(empty)[0].shape
    for gradient, array in zip(gradients, empty.arrays, strict=True):
        assert gradient.shape == array.shape
        assert not gradient.any()


def change_first_array(case, change):
    """Return the case with another first array."""
    x, *other_arrays = case.arrays
    return replace(case, arrays=(change(x), *other_arrays))


def ones(name, *shapes):
    return Case(name, tuple(map(np.ones, shapes)))


LINEAR, NORM, FEED_FORWARD = helpers.linear(), helpers.layer_norm(), helpers.feed_forward()
ATTENTION, DENSE = helpers.attention_heads(3, 4), helpers.dense_heads(3, 4, max_len=4)
LONGER_MASK, NUMBERS_AS_MASK = np.ones((3, 5), bool), np.ones((3, 4), int)


def single(x):
    return x.astype("float32")


def whole(x):
    return x.astype("int64")


def narrower(x):
    return x[..., 1:]


REFUSED = [
    (change_first_array(LINEAR, narrower), ValueError, "x has shape"),
    (ones("linear", (2, 3), (3, 5), (4,)), ValueError, "b has shape"),
    (ones("linear", (2, 3), (3,), (3,)), ValueError, "W has shape"),
    (ones("layer_norm", (2, 3), (4,), (3,)), ValueError, "gamma has shape"),
    (change_first_array(NORM, single), TypeError, "float32"),
    (change_first_array(FEED_FORWARD, narrower), ValueError, "x has shape"),
    (change_first_array(FEED_FORWARD, single), TypeError, "float32"),
    (ones("fourier_mixing", (4,)), ValueError, "x has shape"),
    (change_first_array(helpers.fourier_mixing(), lambda x: 1j * x), TypeError, "complex128"),
    (
        replace(helpers.embedding((2,), 5), others=(np.array([0, 5]),)),
        ValueError,
        "ids holds 5; expected whole numbers from 0 to 4",
    ),
    (helpers.dropout(rate=1.0), ValueError, "rate is 1"),
    (change_first_array(ATTENTION, narrower), ValueError, "x has shape"),
    (change_first_array(ATTENTION, lambda x: x[0]), ValueError, "x has shape"),
    (replace(ATTENTION, mask=LONGER_MASK), ValueError, "mask has shape"),
    (replace(ATTENTION, mask=NUMBERS_AS_MASK), TypeError, "True means keep"),
    (change_first_array(ATTENTION, single), TypeError, "float32.*; expected"),
    (change_first_array(ATTENTION, whole), TypeError, "int64.*; expected"),
    (
        change_first_array(DENSE, lambda x: np.concatenate([x, x[:, :1]], axis=1)),
        ValueError,
        "x has length 5; expected at most 4",
    ),
    (change_first_array(DENSE, narrower), ValueError, "x has shape"),
    (replace(DENSE, mask=LONGER_MASK), ValueError, "mask has shape"),
    (change_first_array(DENSE, single), TypeError, "float32.*; expected"),
    (change_first_array(DENSE, whole), TypeError, "int64.*; expected"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_arrays_that_do_not_fit_are_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        forward(wrong, wrong.arrays, wrong.context())


def test_dropout_refuses_what_is_no_generator():
    with pytest.raises(TypeError, match="generator is an int"):
        KERNELS["dropout"][0](np.ones(3), 0.5, 3, context=EngineContext())
